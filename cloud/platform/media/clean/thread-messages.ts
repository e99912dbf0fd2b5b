import type { CleaningLimits, Refusal } from './parts.ts'

/** Messages from the service to the thread. Each contains the number of its file. */
export type ToThread =
  | { file: number; open: { extension: string; limits: CleaningLimits } }
  | { file: number; block: Uint8Array }
  | { file: number; end: true }
  | { file: number; close: true }

/** The answer to a block or to the end of a file. */
export type FromThread =
  /** The kept bytes are the first `length` of `memory`, which is the memory of the block if they fit into it. */
  | { file: number; memory: ArrayBuffer; length: number; ms: number }
  | { file: number; refusal: Refusal }
  | { file: number; error: string }
