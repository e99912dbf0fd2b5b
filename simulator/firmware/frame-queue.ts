import type { Cancel, Clock } from '../../protocol/model/runtime.ts'
import { encodeFrame } from '../../protocol/serial/codec.ts'
import { acknowledged, type FrameBody, type FrameType } from '../../protocol/serial/frames.ts'

/** A frame without its sequence number. */
type Outgoing = { [T in FrameType]: { type: T } & FrameBody<T> }[FrameType]

interface Waiting {
  body: Outgoing
  onAcknowledged: (() => void) | undefined
}

interface UnderWay extends Waiting {
  seq: number
  line: string
  cancel: Cancel
}

export const FIRST_REPEAT_MS = 25
const LAST_REPEAT_MS = 400
const WINDOW = 8

/** The controller's outgoing frames: numbered, repeated until acknowledged, at most eight under way (SPEC §4). */
export class FrameQueue {
  #clock: Clock
  #transmit: (line: string) => void
  #seq: number
  #waiting: Waiting[] = []
  #underWay = new Map<number, UnderWay>()

  constructor(clock: Clock, firstSeq: number, transmit: (line: string) => void) {
    this.#clock = clock
    this.#seq = firstSeq
    this.#transmit = transmit
  }

  /** Sends a frame. A frame that needs an acknowledgement may have to wait. */
  send(body: Outgoing, onAcknowledged?: () => void): void {
    if (!acknowledged.has(body.type)) {
      this.sendOnce(body)
      return
    }
    this.#waiting.push({ body, onAcknowledged })
    this.#pump()
  }

  /** Sends a frame that needs no acknowledgement. */
  sendOnce(body: Outgoing): void {
    this.#transmit(this.#encode(body).line)
  }

  /** An ACK or NAK arrived. */
  answered(seq: number): void {
    const frame = this.#underWay.get(seq)
    if (!frame) return
    frame.cancel()
    this.#underWay.delete(seq)
    frame.onAcknowledged?.()
    this.#pump()
  }

  /** The session ended: drops all frames, repetitions included. */
  clear(): void {
    for (const { cancel } of this.#underWay.values()) cancel()
    this.#underWay.clear()
    this.#waiting = []
  }

  #encode(body: Outgoing): { seq: number; line: string } {
    const seq = this.#seq
    this.#seq = (seq + 1) % 0x10000
    return { seq, line: encodeFrame({ seq, ...body }) }
  }

  #pump(): void {
    for (let index = 0; index < this.#waiting.length && this.#underWay.size < WINDOW;) {
      const frame = this.#waiting[index]!
      if (this.#mustWait(frame.body.type, index)) {
        index++
        continue
      }
      this.#waiting.splice(index, 1)
      this.#launch(frame)
    }
  }

  /** Events stay in order; END waits for every OPS before it; no frame overtakes WELCOME. */
  #mustWait(type: FrameType, index: number): boolean {
    const ahead = [...this.#underWay.values(), ...this.#waiting.slice(0, index)]
    return ahead.some(
      ({ body }) =>
        body.type === 'WELCOME' ||
        (type === 'EVT' && body.type === 'EVT') ||
        (type === 'END' && body.type === 'OPS') ||
        (type === 'OPS' && body.type === 'END'),
    )
  }

  #launch(waiting: Waiting): void {
    const { seq, line } = this.#encode(waiting.body)
    const frame: UnderWay = { ...waiting, seq, line, cancel: () => {} }
    this.#underWay.set(seq, frame)
    const repeat = (delayMs: number): void => {
      frame.cancel = this.#clock.after(delayMs, () => {
        repeat(Math.min(LAST_REPEAT_MS, delayMs * 2))
        this.#transmit(line)
      })
    }
    repeat(FIRST_REPEAT_MS)
    this.#transmit(line)
  }
}
