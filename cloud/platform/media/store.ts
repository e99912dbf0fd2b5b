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
  /** Stores the content as fast as it comes. If the content throws, stores nothing and throws the same error. */
  write(key: string, mimeType: string, content: AsyncIterable<Uint8Array>): Promise<void>
  /** An object's bytes, or a range of them; null if there is no such object. A caller that stops early cancels the stream. */
  read(key: string, range?: ByteRange): Promise<ReadableStream<Uint8Array> | null>
  /** Removes an object, and the remains of a `write` that never ended. Does nothing if there is neither. */
  remove(key: string): Promise<void>
}

const KEY = /^[a-z]+(\/\d+)?\/[0-9a-f-]{36}\.[a-z0-9]{2,4}$/

/** Whether a text has the form of a key. Such a text cannot name anything outside the store. */
export const isMediaKey = (text: string): boolean => KEY.test(text)
