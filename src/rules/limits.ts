/** Limits of requests, which pages check before they send one. Lengths are in code points. */

/** Of a message, as the platform counts; also of a note and of a saved reply. */
export const textMax = 4_096
export const fileBytesMax = 25 * 1024 * 1024
/** Files that a page sends at once; each is a message of its own. */
export const filesMax = 10
export const savedReplyTitleMax = 100

/** Of a workspace, a user, an account, a stage, a column, and of a question in a search. */
export const nameMax = 200
export const passwordMin = 12
export const passwordMax = 256
/** First messages of an account in a day. */
export const coldMax = 100_000

/** Of a campaign for chats; `contactsMax` is that of a list. */
export const recipientsMax = 100
/** Follow-ups in one track. */
export const trackMax = 5
export const variantsMax = 5
/** Five minutes, and ten years. */
export const waitHoursMin = 0.0833
export const waitHoursMax = 87_600
/** Campaign messages of an account in a day. */
export const quotaMax = 200
export const quotaDefault = 30
