/**
 * Frees a buffer's memory now, if nothing else shares it; the buffer is empty afterwards. Buffers live outside V8's heap,
 * where dozens of megabytes gather before its garbage collector runs.
 */
export function freeBuffer({ buffer, length }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === length) buffer.transfer(0)
}
