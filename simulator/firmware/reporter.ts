import type { FrameBody } from '../../protocol/serial/frames.ts'
import type { Behaviour } from './behaviours.ts'
import type { FrameQueue } from './frame-queue.ts'

/** Tells the host what is sensed: one EVT under way at a time, state merged meanwhile, drops never (SPEC §9). */
export interface Reporter {
  /** Listens to the devices no longer. */
  stop(): void
  /** A session has begun: tell everything. */
  tellAll(): void
  /** The session ended: an event under way will not be acknowledged. */
  pause(): void
  fell(device: string, units: number, op: string | undefined): void
}

export function createReporter(
  behaviours: ReadonlyMap<string, Behaviour>,
  queue: FrameQueue,
  isListening: () => boolean,
): Reporter {
  const told = new Map<string, string>()
  const stale = new Set<string>()
  const drops: FrameBody<'EVT'>[] = []
  let number = 0
  let underWay = false

  function pump(): void {
    if (underWay || !isListening()) return
    const drop = drops[0]
    if (drop) {
      tell(drop, () => drops.shift())
      return
    }
    for (const device of stale) {
      stale.delete(device)
      const sensed = behaviours.get(device)!.sensed()
      const text = JSON.stringify(sensed)
      // It went and came back while another event was under way.
      if (told.get(device) === text) continue
      told.set(device, text)
      tell({ ev: ++number, dev: device, ...sensed })
      return
    }
  }

  function tell(event: FrameBody<'EVT'>, onAcknowledged?: () => void): void {
    underWay = true
    queue.send({ type: 'EVT', ...event }, () => {
      underWay = false
      onAcknowledged?.()
      pump()
    })
  }

  const removals = [...behaviours.values()].map((behaviour) =>
    behaviour.onSense(() => {
      stale.add(behaviour.device)
      pump()
    }),
  )

  return {
    tellAll() {
      told.clear()
      for (const device of behaviours.keys()) stale.add(device)
      pump()
    },
    pause() {
      underWay = false
    },
    fell(device, units, op) {
      drops.push({ ev: ++number, dev: device, drop: units, op })
      pump()
    },
    stop() {
      for (const remove of removals) remove()
    },
  }
}
