import { readFileSync, statSync } from 'node:fs'

/** Whether a file exists. Throws if the card fails or this user may not look: an unreadable file is not an absent one. */
export const isThere = (path: string): boolean => statSync(path, { throwIfNoEntry: false }) !== undefined

/** The text of a file; undefined if there is none. Throws for every other reason. */
export const textIfThere = (path: string): string | undefined =>
  isThere(path) ? readFileSync(path, 'utf8') : undefined
