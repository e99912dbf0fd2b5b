import { Worker } from 'node:worker_threads'
import type { Clock } from '../../../../protocol/model/runtime.ts'
import type { Cleaned, Cleaning, OpenFile } from './cleaning.ts'
import { RefusedFile, type CleaningLimits, type Refusal } from './parts.ts'

/**
 * The thread's file for a module of the cloud. In a package, modules are not at their places in the sources, and the
 * thread's program has its own place (`threads` of the package's manifest).
 */
export function threadFileOf(moduleUrl: string): URL {
  const cloud = moduleUrl.slice(0, moduleUrl.lastIndexOf('/cloud/') + '/cloud/'.length)
  return new URL('platform/media/clean/thread.js', cloud)
}

/** A block in separate memory, which is transferred to the thread. */
const ofItsOwn = (block: Buffer): Uint8Array<ArrayBuffer> =>
  block.byteLength === block.buffer.byteLength
    ? (block as Uint8Array<ArrayBuffer>)
    : Uint8Array.prototype.slice.call(block)

interface Waiting {
  resolve: (cleaned: Cleaned) => void
  reject: (error: Error) => void
}

/** A thread hangs if it does not answer within this multiple of a file's processor time. */
const HANGS_AFTER = 10
/** The memory of the thread, in MiB. */
const MEMORY = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 16 }

/** Cleans files in a separate thread, which starts with the first file. A dead or hanging thread is replaced. */
export class CleaningThread implements Cleaning {
  readonly #file: URL
  readonly #clock: Clock
  #worker: Worker | undefined
  /** By file number. */
  #waiting = new Map<number, Waiting>()
  #last = 0

  constructor(file: URL, clock: Clock) {
    this.#file = file
    this.#clock = clock
  }

  open(extension: string, limits: CleaningLimits): OpenFile {
    const file = (this.#last += 1)
    const worker = (this.#worker ??= this.#start())
    const post = (message: ToThread, owned: readonly ArrayBuffer[] = []): void =>
      worker.postMessage(message, owned)
    const ask = (message: ToThread, owned?: readonly ArrayBuffer[]): Promise<Cleaned> =>
      new Promise<Cleaned>((resolve, reject) => {
        if (worker !== this.#worker) return reject(new Error('the thread that cleans files has ended'))
        this.#waiting.set(file, { resolve, reject })
        post(message, owned)
      })
    const inTime = (work: Promise<Cleaned>): Promise<Cleaned> => {
      const cancel = this.#clock.after(limits.processorMs * HANGS_AFTER, () => this.#end(worker, 'hangs'))
      return work.finally(cancel)
    }
    post({ file, open: { extension, limits } })
    return {
      push(block) {
        const own = ofItsOwn(block)
        return inTime(ask({ file, block: own }, [own.buffer]))
      },
      end: () => inTime(ask({ file, end: true })),
      close: () => {
        this.#waiting.delete(file)
        post({ file, close: true })
      },
    }
  }

  async stop(): Promise<void> {
    const worker = this.#worker
    if (worker) this.#end(worker, 'was stopped')
    await worker?.terminate()
  }

  #start(): Worker {
    const worker = new Worker(this.#file, { resourceLimits: MEMORY, env: {}, execArgv: [] })
    // A program can end while the thread exists.
    worker.unref()
    worker.on('message', (answer: FromThread) => this.#settle(answer))
    worker.on('error', (error) => this.#end(worker, `failed: ${error.message}`))
    worker.on('exit', () => this.#end(worker, 'ended'))
    return worker
  }

  #settle(answer: FromThread): void {
    const waiting = this.#waiting.get(answer.file)
    if (!waiting) return
    this.#waiting.delete(answer.file)
    if ('memory' in answer) {
      const { memory, length, ms } = answer
      waiting.resolve({ kept: new Uint8Array(memory, 0, length), ms, spare: memory })
    } else if ('refusal' in answer) waiting.reject(new RefusedFile(answer.refusal))
    else waiting.reject(new Error(answer.error))
  }

  /** Fails the thread's files. The next file starts another thread. */
  #end(worker: Worker, how: string): void {
    if (worker !== this.#worker) return
    this.#worker = undefined
    const waiting = [...this.#waiting.values()]
    this.#waiting.clear()
    for (const { reject } of waiting) reject(new Error(`the thread that cleans files ${how}`))
    void worker.terminate()
  }
}

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
