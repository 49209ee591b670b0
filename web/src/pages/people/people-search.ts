/** What the address of the page says. */
export interface PeopleSearch {
  q?: string
  /** Opens the person at once if `q` means one only. */
  open?: true
}
