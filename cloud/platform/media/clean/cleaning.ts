import { Cleaner } from './cleaner.ts'
import type { CleaningLimits } from './parts.ts'

/** Cleans files (`Cleaner`), wherever that happens. */
export interface Cleaning {
  open(extension: string, limits: CleaningLimits): OpenFile
  /** Ends it; files that are open fail. */
  stop(): Promise<void>
}

/** A file that is being cleaned. Throws `RefusedFile`. */
export interface OpenFile {
  /** Handles a block, which must not be used after. */
  push(block: Buffer): Promise<Cleaned>
  end(): Promise<Cleaned>
  /** Gives the file up. */
  close(): void
}

export interface Cleaned {
  kept: Uint8Array
  /** Processor time, in milliseconds. */
  ms: number
}

/** Cleans in the caller's own thread: for tests, and for programs that handle their own files. */
export const ownCleaning: Cleaning = {
  open(extension, limits) {
    const cleaner = new Cleaner(extension, limits)
    const step = (work: () => Buffer): Promise<Cleaned> => {
      const before = cleaner.spentMs
      const kept = work()
      return Promise.resolve({ kept, ms: cleaner.spentMs - before })
    }
    return {
      // eslint-disable-next-line require-await
      push: async (block) => step(() => cleaner.push(block)),
      // eslint-disable-next-line require-await
      end: async () => step(() => cleaner.end()),
      close() {},
    }
  },
  stop: () => Promise.resolve(),
}

/** Blocks are as long as this, however small the pieces are that a sender sends: each block costs a message to the thread. */
const BLOCK_BYTES = 64 * 1024

export interface CleanOptions {
  limits: CleaningLimits
  /** Called with the processor time of each block. What it throws ends the file. */
  spent: (ms: number) => void
}

/** The content of a file without what its maker's device wrote into it. Throws `RefusedFile`. */
export async function* cleaned(
  cleaning: Cleaning,
  extension: string,
  content: AsyncIterable<Uint8Array>,
  { limits, spent }: CleanOptions,
): AsyncGenerator<Uint8Array> {
  const file = cleaning.open(extension, limits)
  const take = ({ kept, ms }: Cleaned): Uint8Array => {
    spent(ms)
    return kept
  }
  try {
    for await (const block of blocksOf(content)) {
      const kept = take(await file.push(block))
      if (kept.length > 0) yield kept
    }
    const last = take(await file.end())
    if (last.length > 0) yield last
  } finally {
    file.close()
  }
}

/** The same bytes in blocks, each in memory of its own. */
async function* blocksOf(content: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let block = Buffer.allocUnsafeSlow(BLOCK_BYTES)
  let length = 0
  for await (const chunk of content)
    for (let at = 0; at < chunk.length;) {
      const part = Math.min(BLOCK_BYTES - length, chunk.length - at)
      block.set(chunk.subarray(at, at + part), length)
      at += part
      length += part
      if (length < BLOCK_BYTES) continue
      yield block
      block = Buffer.allocUnsafeSlow(BLOCK_BYTES)
      length = 0
    }
  if (length > 0) yield block.subarray(0, length)
}
