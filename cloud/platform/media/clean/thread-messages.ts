import type { CleaningLimits, Refusal } from './parts.ts'

/** What the service sends to the thread, each about the file of that number. */
export type ToThread =
  | { file: number; open: { extension: string; limits: CleaningLimits } }
  | { file: number; block: Uint8Array }
  | { file: number; end: true }
  | { file: number; close: true }

/** The answer to a block, and to the end of a file. */
export type FromThread =
  | { file: number; kept: Uint8Array<ArrayBuffer>; ms: number }
  | { file: number; refusal: Refusal }
  | { file: number; error: string }
