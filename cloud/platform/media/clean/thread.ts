import { parentPort } from 'node:worker_threads'
import { Cleaner } from './cleaner.ts'
import { RefusedFile } from './parts.ts'
import type { FromThread, ToThread } from './cleaning-thread.ts'

/**
 * The thread that cleans files (`cleaning-thread.ts`), so that the processor time of a picture never delays other
 * calls.
 */

const files = new Map<number, Cleaner>()

// There is no parent port when the package is checked without a service.
parentPort?.on('message', (message: ToThread) => {
  const { file } = message
  if ('open' in message) files.set(file, new Cleaner(message.open.extension, message.open.limits))
  else if ('close' in message) files.delete(file)
  else {
    const cleaner = files.get(file)
    if (cleaner) answer(file, cleaner, message)
  }
})

function answer(file: number, cleaner: Cleaner, message: { block: Uint8Array } | { end: true }): void {
  try {
    const before = cleaner.spentMs
    const sent = 'block' in message ? Buffer.from(message.block.buffer) : undefined
    const kept = sent ? cleaner.push(sent) : cleaner.end()
    cleaner.leaveBlock()
    const { buffer } = sent && kept.length <= sent.length ? sent : new Uint8Array(kept.length)
    const memory = buffer as ArrayBuffer
    new Uint8Array(memory).set(kept)
    send({ file, memory, length: kept.length, ms: cleaner.spentMs - before }, [memory])
  } catch (error) {
    files.delete(file)
    if (error instanceof RefusedFile) send({ file, refusal: error.refusal })
    else send({ file, error: error instanceof Error ? (error.stack ?? error.message) : String(error) })
  }
}

const send = (message: FromThread, owned: readonly ArrayBuffer[] = []): void =>
  parentPort!.postMessage(message, owned)
