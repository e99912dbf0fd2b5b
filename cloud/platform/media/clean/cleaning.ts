import { Cleaner } from './cleaner.ts'
import type { CleaningLimits } from './parts.ts'

/** Cleans files (`Cleaner`), in this thread or another. */
export interface Cleaning {
  open(extension: string, limits: CleaningLimits): OpenFile
  /** Stops cleaning. Open files fail. */
  stop(): Promise<void>
}

/** A file that is being cleaned. Throws `RefusedFile`. */
export interface OpenFile {
  /** Processes a block. The caller must not use the block afterwards. */
  push(block: Buffer): Promise<Cleaned>
  end(): Promise<Cleaned>
  /** Abandons the file. */
  close(): void
}

export interface Cleaned {
  kept: Uint8Array
  /** Processor time, in milliseconds. */
  ms: number
  /** The memory of `kept`, if nobody else uses it. */
  spare?: ArrayBuffer
}

/** Cleans in the caller's thread: for tests, and for programs that process their own files. */
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

/** Size of a block, even if the sender sends smaller pieces, because each block costs a message to the thread. */
const BLOCK_BYTES = 64 * 1024

interface CleanOptions {
  limits: CleaningLimits
  /** Called with the processor time of each block. If it throws, the file ends. */
  spent: (ms: number) => void
}

/**
 * The content of a file without the metadata of the recording device. The memory of a chunk is used again when the next
 * one is requested: new memory for each block makes the garbage collector run once per picture. Throws `RefusedFile`.
 */
export async function* cleaned(
  cleaning: Cleaning,
  extension: string,
  content: AsyncIterable<Uint8Array>,
  { limits, spent }: CleanOptions,
): AsyncGenerator<Uint8Array> {
  const file = cleaning.open(extension, limits)
  const spares: Buffer[] = []
  try {
    for await (const block of blocksOf(content, spares)) {
      const { kept, ms, spare } = await file.push(block)
      spent(ms)
      if (kept.length > 0) yield kept
      if (spare?.byteLength === BLOCK_BYTES) spares.push(Buffer.from(spare))
    }
    const { kept, ms } = await file.end()
    spent(ms)
    if (kept.length > 0) yield kept
  } finally {
    file.close()
  }
}

/** The same bytes in blocks, each in separate memory, which comes from `spares` if there is one. */
async function* blocksOf(content: AsyncIterable<Uint8Array>, spares: Buffer[]): AsyncGenerator<Buffer> {
  const next = (): Buffer => spares.pop() ?? Buffer.allocUnsafeSlow(BLOCK_BYTES)
  let block = next()
  let length = 0
  for await (const chunk of content)
    for (let at = 0; at < chunk.length;) {
      const part = Math.min(BLOCK_BYTES - length, chunk.length - at)
      block.set(chunk.subarray(at, at + part), length)
      at += part
      length += part
      if (length < BLOCK_BYTES) continue
      yield block
      block = next()
      length = 0
    }
  if (length > 0) yield block.subarray(0, length)
}
