/** Part of an object, both ends included. */
export interface ByteRange {
  first: number
  last: number
}

/**
 * Where files are kept, by keys such as `banners/<uuid>.png`. An object is there in full or not at all, and is never
 * changed: a key is written once.
 */
export interface MediaStore {
  /** Takes the content as fast as it can be stored. Where the content throws, nothing is stored and the error thrown on. */
  write(key: string, mimeType: string, content: AsyncIterable<Uint8Array>): Promise<void>
  /** An object's bytes, or some of them; null where there is no such object. Whoever does not read to the end cancels. */
  read(key: string, range?: ByteRange): Promise<ReadableStream<Uint8Array> | null>
  /** Removes an object, and what a `write` that never ended has left of it; nothing happens where there is nothing. */
  remove(key: string): Promise<void>
}

const KEY = /^[a-z]+(\/\d+)?\/[0-9a-f-]{36}\.[a-z0-9]{2,4}$/

/** Whether a text has the form of a key: whatever has, stays inside the store. */
export const isMediaKey = (text: string): boolean => KEY.test(text)
