import type { Cancel, Clock } from '../../protocol/model/runtime.ts'
import {
  MAX_PART_BYTES,
  type Diagnosis,
  type DiagnosisPart,
  type DiagnosisRequest,
} from '../../protocol/mqtt/diagnosis.ts'
import { Unavailable } from '../platform/work/runner.ts'

/** A hub that sends nothing for that time does not answer. */
const SILENT_MS = 30_000
/** Time after which a request is sent again. */
const AGAIN_MS = 15_000
/** Size of the first part, and of the smallest. On a line of 64 kbit/s it takes a third of a second. */
const LEAST_BYTES = 2 * 1024
/** A part shall take this time, so that no command or report waits longer behind it. */
const PART_MS = 250

export interface DiagnosesPorts {
  clock: Clock
  /** False if the broker is not connected. */
  publish: (hubId: number, request: DiagnosisRequest) => boolean
  /** Subscribes to the hub's answers, whichever process serves it. False if the broker is not connected. */
  listen: (hubId: number) => Promise<boolean>
}

export interface Wanted {
  hubId: number
  /** UUID. A repetition with the same id gets the same answer. */
  request: string
  wanted: Diagnosis
  /** Time limit of the whole answer. */
  withinMs: number
  /** Called after each part. False ends the reading. */
  onPart: () => Promise<boolean>
}

/** `undefined`: the hub did not answer in time. */
export type Answer = { content: Buffer; cursor: string | null } | undefined

interface Waiter {
  hubId: number
  offset: number
  resolve: (part: DiagnosisPart | undefined) => void
}

/**
 * Fetches log records and diagnostic archives from hubs (SPEC §13), one part at a time. Their size follows the speed of the hub's
 * line. After each part the line is free for as long as the part took, so that orders always have half of it.
 */
export class Diagnoses {
  readonly #ports: DiagnosesPorts
  readonly #waiters = new Map<string, Waiter>()
  readonly #pauses = new Set<() => void>()
  #hasStopped = false

  constructor(ports: DiagnosesPorts) {
    this.#ports = ports
  }

  /** Ends all readings. */
  stop(): void {
    this.#hasStopped = true
    for (const { resolve } of this.#waiters.values()) resolve(undefined)
    for (const end of this.#pauses) end()
  }

  isAwaited(hubId: number): boolean {
    return [...this.#waiters.values()].some((waiter) => waiter.hubId === hubId)
  }

  onPart(hubId: number, part: DiagnosisPart): void {
    const waiter = this.#waiters.get(part.request)
    if (waiter?.hubId === hubId && waiter.offset === part.offset) waiter.resolve(part)
  }

  async read({ hubId, request, wanted, withinMs, onPart }: Wanted): Promise<Answer> {
    const { clock } = this.#ports
    const parts: Buffer[] = []
    const endMs = clock.monotonic() + withinMs
    let [offset, bytes] = [0, LEAST_BYTES]
    for (;;) {
      const begunMs = clock.monotonic()
      if (begunMs >= endMs) return undefined
      const silentMs = Math.min(SILENT_MS, endMs - begunMs)
      const part = await this.#part(hubId, { request, wanted, offset, bytes }, silentMs)
      if (this.#hasStopped) throw new Unavailable('this process stops')
      const data = Buffer.from(part?.data ?? '', 'base64')
      offset += data.length
      if (!part || (data.length === 0 && offset < part.size)) return undefined
      parts.push(data)
      if (offset >= part.size) return { content: Buffer.concat(parts), cursor: part.cursor ?? null }
      if (!(await onPart())) return undefined
      const tookMs = clock.monotonic() - begunMs
      // The first part may have taken long because the hub made the answer.
      const grown = parts.length === 1 ? bytes : Math.round(bytes * Math.min(2, PART_MS / tookMs))
      bytes = Math.min(MAX_PART_BYTES, Math.max(LEAST_BYTES, grown))
      await this.#pause(Math.min(tookMs, SILENT_MS))
    }
  }

  /** One part, or undefined if the hub is silent. */
  async #part(
    hubId: number,
    request: DiagnosisRequest,
    silentMs: number,
  ): Promise<DiagnosisPart | undefined> {
    const { clock, publish, listen } = this.#ports
    if (!(await listen(hubId)) || this.#hasStopped) return undefined
    return new Promise((done) => {
      let cancels: Cancel[] = []
      const resolve = (part: DiagnosisPart | undefined): void => {
        for (const cancel of cancels) cancel()
        this.#waiters.delete(request.request)
        done(part)
      }
      const send = (): void => void publish(hubId, request)
      this.#waiters.set(request.request, { hubId, offset: request.offset, resolve })
      cancels = [clock.after(AGAIN_MS, send), clock.after(silentMs, () => resolve(undefined))]
      send()
    })
  }

  #pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        cancel()
        this.#pauses.delete(end)
        resolve()
      }
      const cancel = this.#ports.clock.after(delayMs, end)
      this.#pauses.add(end)
    })
  }
}
