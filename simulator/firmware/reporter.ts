import type { FrameBody } from '../../protocol/serial/frames.ts'
import type { Behaviour, Sensed } from './behaviours.ts'
import type { FrameQueue } from './frame-queue.ts'

/**
 * Reports sensor values to the host: one unacknowledged EVT at a time. State changes merge in the meantime, drops never
 * do (SPEC §9).
 */
export class Reporter {
  #behaviours: ReadonlyMap<string, Behaviour>
  #queue: FrameQueue
  #isListening: () => boolean
  #forHost: (sensed: Sensed) => Sensed
  /** The last reported values of each device. */
  #reported = new Map<string, string>()
  #stale = new Set<string>()
  #drops: FrameBody<'EVT'>[] = []
  #number = 0
  #isUnderWay = false
  #removals: (() => void)[]

  /** `forHost` converts the values for the host's version of the protocol. */
  constructor(
    behaviours: ReadonlyMap<string, Behaviour>,
    queue: FrameQueue,
    { isListening, forHost }: { isListening: () => boolean; forHost: (sensed: Sensed) => Sensed },
  ) {
    this.#behaviours = behaviours
    this.#queue = queue
    this.#isListening = isListening
    this.#forHost = forHost
    this.#removals = [...behaviours.values()].map((behaviour) =>
      behaviour.onSense(() => {
        this.#stale.add(behaviour.device)
        this.#pump()
      }),
    )
  }

  /** A session has begun: reports all values. */
  reportAll(): void {
    this.#reported.clear()
    for (const device of this.#behaviours.keys()) this.#stale.add(device)
    this.#pump()
  }

  /** The session ended: a sent event will not be acknowledged. */
  pause(): void {
    this.#isUnderWay = false
  }

  fell(device: string, units: number, op: string | undefined): void {
    this.#drops.push({ ev: ++this.#number, dev: device, drop: units, op })
    this.#pump()
  }

  /** Removes the listeners from the devices. */
  stop(): void {
    for (const remove of this.#removals) remove()
  }

  #pump(): void {
    if (this.#isUnderWay || !this.#isListening()) return
    const drop = this.#drops[0]
    if (drop) return this.#report(drop, () => this.#drops.shift())
    for (const device of this.#stale) {
      this.#stale.delete(device)
      const behaviour = this.#behaviours.get(device)!
      const sensed = this.#forHost(behaviour.sensed())
      const text = JSON.stringify(sensed)
      // The value changed and changed back while another event was unacknowledged.
      if (!behaviour.repeats && this.#reported.get(device) === text) continue
      this.#reported.set(device, text)
      return this.#report({ ev: ++this.#number, dev: device, ...sensed })
    }
  }

  #report(event: FrameBody<'EVT'>, onAcknowledged?: () => void): void {
    this.#isUnderWay = true
    this.#queue.send({ type: 'EVT', ...event }, () => {
      this.#isUnderWay = false
      onAcknowledged?.()
      this.#pump()
    })
  }
}
