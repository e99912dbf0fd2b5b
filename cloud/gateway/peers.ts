import { every, type Cancel, type Clock } from '../../protocol/model/runtime.ts'
import { Gone, Here } from '../../protocol/mqtt/between-clouds.ts'
import type { CloudChannel } from '../../protocol/mqtt/topics.ts'

export interface PeersPorts {
  clock: Clock
  /** Names this life of this process: unique to it. */
  processId: string
  beatMs: number
  /** See `GatewaySettings`. */
  silentBeats: number
  /** Publishes, where the broker is connected. */
  publish: (channel: CloudChannel, message: object) => void
  /** Who serves may have changed. */
  onChange: () => void
}

interface Peer {
  serving: boolean
  /** This process's own beats that have come back since it was heard. */
  missed: number
}

/** A process that comes knows the others when so many of its own beats have come back: they answer what it says at first. */
const BEATS_TO_KNOW = 1

/**
 * The cloud processes at the broker (SPEC §7). Each says every second that it is there, and hears itself too. Another is
 * gone when its will says so, or when it was not heard between several of this process's own beats. These come by the same
 * line and behind the same backlog as the others': so a process that is slow to read, or whose own line is down, takes
 * nobody for dead.
 */
export class Peers {
  readonly will: Gone
  readonly #ports: PeersPorts
  readonly #others = new Map<string, Peer>()
  #service: 'none' | 'paused' | 'full' = 'none'
  /** Of this process: those that were sent, and the last that has come back. */
  #beat = 0
  #beatHeard = 0
  #cancel: Cancel = () => {}

  constructor(ports: PeersPorts) {
    this.#ports = ports
    this.will = { process_id: ports.processId }
  }

  /** Whether it knows who else is there. */
  get knowsOthers(): boolean {
    return this.#beatHeard >= BEATS_TO_KNOW
  }

  /** Those that serve hubs, this process among them. */
  get serving(): string[] {
    const others = [...this.#others].filter(([, { serving }]) => serving).map(([id]) => id)
    return [this.#ports.processId, ...others].sort()
  }

  /** The broker is connected. The others have their time to come back to it too. */
  connected(): void {
    for (const peer of this.#others.values()) peer.missed = 0
    this.#say()
    this.#cancel()
    this.#cancel = every(this.#ports.clock, this.#ports.beatMs, () => {
      this.#beat += 1
      this.#say()
    })
  }

  disconnected(): void {
    this.#cancel()
  }

  /** This process hears its share: from now on it counts. */
  serve(): void {
    this.#setService('full')
  }

  /** It can serve nobody, and does not count until it can. */
  pause(): void {
    if (this.#service === 'full') this.#setService('paused')
  }

  get isPaused(): boolean {
    return this.#service === 'paused'
  }

  #setService(service: 'paused' | 'full'): void {
    if (this.#service === service) return
    this.#service = service
    this.#say()
  }

  leave(): void {
    this.#cancel()
    this.#ports.publish('gone', this.will)
  }

  onHere({ process_id: id, serving, beat }: Here): void {
    if (id === this.#ports.processId) return this.#onOwn(beat)
    const known = this.#others.get(id)
    this.#others.set(id, { serving, missed: 0 })
    // It has just come, and does not know who is there.
    if (!known) this.#say()
    if ((known?.serving ?? false) !== serving) this.#ports.onChange()
  }

  /** Where that one only lost its connection, it comes back. */
  onGone({ process_id: id }: Gone): void {
    if (this.#others.delete(id)) this.#ports.onChange()
  }

  #onOwn(beat: number): void {
    if (beat <= this.#beatHeard) return
    const knew = this.knowsOthers
    this.#beatHeard = beat
    let isChanged: boolean = this.#beatHeard >= BEATS_TO_KNOW && !knew
    for (const [id, peer] of this.#others) {
      peer.missed += 1
      if (peer.missed < this.#ports.silentBeats) continue
      this.#others.delete(id)
      isChanged = true
    }
    if (isChanged) this.#ports.onChange()
  }

  #say(): void {
    const { processId, publish } = this.#ports
    const serving = this.#service === 'full'
    publish('here', { process_id: processId, serving, beat: this.#beat } satisfies Here)
  }
}
