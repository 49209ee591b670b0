/**
 * Frees these bytes now, if they have their memory to themselves. Whoever still holds them finds them empty. The
 * memory of buffers lies outside the engine's heap, where its collector lets dozens of megabytes gather before it looks.
 */
export function freeBuffer({ buffer, length }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === length) buffer.transfer(0)
}
