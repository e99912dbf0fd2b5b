import { every, type Cancel, type Clock } from '../../protocol/model/runtime.ts'
import { Gone, Here } from '../../protocol/mqtt/between-clouds.ts'
import type { CloudChannel } from '../../protocol/mqtt/topics.ts'

export interface PeersPorts {
  clock: Clock
  /** Identifies this life of this process. */
  processId: string
  beatMs: number
  /** See `GatewaySettings`. */
  silentBeats: number
  /** Publishes if the broker is connected. */
  publish: (channel: CloudChannel, message: object) => void
  /** The set of serving processes may have changed. */
  onChange: () => void
}

interface Peer {
  serving: boolean
  /** This process's own beats that arrived since the other's last message. */
  missed: number
}

/** A new process knows the others after this number of its own beats has arrived, because they answer its first one. */
const BEATS_TO_KNOW = 1

/**
 * The cloud processes at the broker (SPEC §7). Each publishes a beat every second and receives its own too. Another
 * process is gone when its will arrives, or when several own beats arrive without one of its beats. All beats use the
 * same connection and queue. So a process that is slow to read, or has lost its connection, does not take others for
 * dead.
 */
export class Peers {
  readonly will: Gone
  readonly #ports: PeersPorts
  readonly #others = new Map<string, Peer>()
  #service: 'none' | 'paused' | 'full' = 'none'
  /** This process's last sent beat, and the last one that arrived. */
  #beat = 0
  #beatHeard = 0
  #cancel: Cancel = () => {}

  constructor(ports: PeersPorts) {
    this.#ports = ports
    this.will = { process_id: ports.processId }
  }

  /** Whether it knows the other processes. */
  get knowsOthers(): boolean {
    return this.#beatHeard >= BEATS_TO_KNOW
  }

  /** The processes that serve hubs, including this one. */
  get serving(): string[] {
    const others = [...this.#others].filter(([, { serving }]) => serving).map(([id]) => id)
    return [this.#ports.processId, ...others].sort()
  }

  /** The broker is connected. The others get time to reconnect too. */
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

  /** This process receives the messages of its share: from now on it counts. */
  serve(): void {
    this.#setService('full')
  }

  /** This process cannot serve hubs, and does not count until it can. */
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
    // It is new and does not know the other processes.
    if (!known) this.#say()
    if ((known?.serving ?? false) !== serving) this.#ports.onChange()
  }

  /** If it only lost its connection, it returns. */
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
