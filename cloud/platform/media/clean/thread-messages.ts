import type { CleaningLimits, Refusal } from './parts.ts'

/** Messages from the service to the thread. Each contains the number of its file. */
export type ToThread =
  | { file: number; open: { extension: string; limits: CleaningLimits } }
  | { file: number; block: Uint8Array }
  | { file: number; end: true }
  | { file: number; close: true }

/** The answer to a block or to the end of a file. */
export type FromThread =
  | { file: number; kept: Uint8Array<ArrayBuffer>; ms: number }
  | { file: number; refusal: Refusal }
  | { file: number; error: string }
