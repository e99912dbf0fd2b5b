/** Part of an object, both ends included. */
export interface ByteRange {
  first: number
  last: number
}

/**
 * Stores files under keys such as `banners/<uuid>.png`. An object exists completely or not at all, and never changes: a
 * key is written once.
 */
export interface MediaStore {
  /**
   * Stores the content as it arrives. The memory of a chunk may change when the next one is requested. If the content throws, stores nothing and throws the same error.
   */
  write(key: string, mimeType: string, content: AsyncIterable<Uint8Array>): Promise<void>
  /**
   * An object's bytes, or a range of them; null if there is no such object. If the caller stops early, the stream is
   * cancelled.
   */
  read(key: string, range?: ByteRange): Promise<ReadableStream<Uint8Array> | null>
  /** Removes an object, and the remains of an unfinished `write`. Does nothing if there is neither. */
  remove(key: string): Promise<void>
}

const KEY = /^[a-z]+(\/\d+)?\/[0-9a-f-]{36}\.[a-z0-9]{2,4}$/

/** Whether a text has the form of a key. Such a text cannot name anything outside the store. */
export const isMediaKey = (text: string): boolean => KEY.test(text)
