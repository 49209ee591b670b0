/** Memory outside the engine's heap, which its collector lets gather by the dozen megabytes before it looks. */

/** Frees these bytes now, if they have their memory to themselves. Whoever still holds them finds them empty. */
export function release({ buffer, length }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === length) buffer.transfer(0)
}
