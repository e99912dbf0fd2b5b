import { folderStore } from './folder-store.ts'
import type { MediaStore } from './store.ts'

/** The store that `MEDIA_URL` names: `file:PATH`. */
export function openMediaStore(url: string): MediaStore {
  return folderStore(url.slice('file:'.length))
}
