import { unavailable } from '../unavailable.ts'
import type { MediaStore } from './store.ts'

/** Names the store in its errors, so that its callers answer 503. Errors of the content that is written stay as they are. */
export function namedStore(store: MediaStore): MediaStore {
  const named = (error: unknown) => unavailable('the media store (MEDIA_URL)', error)
  return {
    async write(key, mimeType, content) {
      let fault: { error: unknown } | undefined
      async function* watched(): AsyncGenerator<Uint8Array> {
        try {
          yield* content
        } catch (error) {
          fault = { error }
          throw error
        }
      }
      try {
        await store.write(key, mimeType, watched())
      } catch (error) {
        throw fault ? fault.error : named(error)
      }
    },

    read: (key, range) =>
      store.read(key, range).catch((error: unknown) => {
        throw named(error)
      }),

    remove: (key) =>
      store.remove(key).catch((error: unknown) => {
        throw named(error)
      }),
  }
}
