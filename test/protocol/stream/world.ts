import { isOurs, initialSender, stepSender } from '../../../protocol/stream/sender.ts'
import type { SenderEffect, SenderEvent, SenderLimits, SenderState } from '../../../protocol/stream/sender.ts'
import { judgeBatch, judgeEpoch } from '../../../protocol/stream/receiver.ts'
import type { ReceiverState } from '../../../protocol/stream/receiver.ts'

/** One event of a stream. A number selects an existing item, modulo the number of items. */
export type Act =
  | { type: 'append' }
  | { type: 'deliver' | 'drop' | 'duplicate'; which: number }
  | { type: 'timeout' | 'connect' | 'disconnect' | 'restart' | 'hello' }
  | { type: 'backup' | 'restore' }
  | { type: 'wait'; ms: number }

interface Entry {
  tag: number
  value: number
}

interface SenderStore {
  epoch: string
  base: number
  baseTag: number
  entries: Entry[]
}

type Message =
  | { kind: 'hello'; session: number; monotonic: number; epoch: string }
  | {
      kind: 'welcome'
      session: number
      answers: number
      epoch: string
      cursor: number
      tag: number
      restart: boolean
    }
  | { kind: 'batch'; epoch: string; first: number; previousTag: number; oldest: number; entries: Entry[] }
  | { kind: 'ack'; epoch: string; cursor: number; tag: number; resend: boolean; fork: boolean }

/** Size of each entry. */
export const ENTRY_BYTES = 10

export interface WorldOptions {
  limits: SenderLimits
  lossy: boolean
  /** Number of entries that a lossy sender stores. */
  ring: number
}

/**
 * One sender and one receiver with stores that survive restarts, and a network that holds, loses, duplicates
 * and reorders messages. Every step checks that no entry is deleted before it is applied.
 */
export class World {
  readonly #options: WorldOptions
  #store: SenderStore
  #backup: SenderStore
  #state: SenderState
  #session = 0
  #time = 0
  /** Hellos of this session since the last answered one. */
  #hellos: { monotonic: number; epoch: string; base: number; sent: number }[] = []
  #numbers = 0
  #receiver: ReceiverState = { epoch: null, cursor: 0, tag: 0 }
  #left = new Set<string>()
  #network: Message[] = []
  readonly violations: string[] = []
  /** Everything that the receiver applied, in order, by epoch. */
  readonly applied: { epoch: string; value: number }[] = []
  /** Values that only the receiver's store may still contain: a restored copy lost them. */
  readonly lost = new Set<number>()
  appended = 0
  forks = 0
  sentBatches = 0
  sentBytes = 0
  asks = 0
  #armedMs: number | null = null

  constructor(options: WorldOptions) {
    this.#options = options
    this.#store = { epoch: 'epoch-0', base: 0, baseTag: 0, entries: [] }
    this.#backup = this.#store
    this.#state = initialSender(this.#position())
  }

  get epoch(): string {
    return this.#store.epoch
  }
  get state(): SenderState {
    return this.#state
  }
  get armedMs(): number | null {
    return this.#armedMs
  }
  get inFlight(): number {
    return this.#network.length
  }
  get kept(): number[] {
    return this.#store.entries.map((entry) => entry.value)
  }

  act(act: Act): void {
    this.#time++
    switch (act.type) {
      case 'append': {
        const value = this.appended++
        this.#store = {
          ...this.#store,
          entries: [...this.#store.entries, { tag: 1000 + this.#numbers++, value }],
        }
        const over = this.#options.lossy ? this.#store.entries.length - this.#options.ring : 0
        if (over > 0) {
          this.#cut(this.#store.base + over)
          this.#step({ type: 'overwritten', through: this.#store.base })
        }
        return this.#step({ type: 'appended', last: this.#last() })
      }
      case 'deliver':
      case 'drop':
      case 'duplicate': {
        if (this.#network.length === 0) return
        const index = act.which % this.#network.length
        const message = this.#network[index]!
        if (act.type !== 'duplicate') this.#network.splice(index, 1)
        if (act.type !== 'drop') this.#receive(message)
        return
      }
      case 'timeout':
        if (this.#armedMs === null) return
        this.#armedMs = null
        return this.#step({ type: 'timeout' })
      case 'connect':
        this.#session++
        this.#disconnect()
        return this.#sendHello()
      case 'wait':
        this.#time += act.ms
        return
      case 'hello':
        return this.#sendHello()
      case 'disconnect':
        return this.#disconnect()
      case 'restart':
        this.#disconnect()
        this.#session++
        return this.#sendHello()
      case 'backup':
        this.#backup = this.#store
        return
      case 'restore': {
        const kept = new Set(this.#backup.entries.map((entry) => entry.value))
        for (const { value } of this.#store.entries) if (!kept.has(value)) this.lost.add(value)
        for (const value of kept) this.lost.delete(value)
        this.#store = this.#backup
        return this.act({ type: 'restart' })
      }
    }
  }

  /** Makes the network fair: messages arrive in order, timers fire, until no work is left. */
  settle(maxRounds: number): boolean {
    this.#network = []
    this.act({ type: 'connect' })
    for (let round = 0; round < maxRounds; round++) {
      while (this.#network.length > 0) this.act({ type: 'deliver', which: 0 })
      const done =
        this.#store.entries.length === 0 || (this.#options.lossy && this.#state.base === this.#last())
      if (done && this.#state.connected) return true
      if (!this.#state.connected) this.act({ type: 'hello' })
      else this.act({ type: 'timeout' })
    }
    return false
  }

  /** Delivers all outstanding messages in order. Returns false if any remain. */
  settled(): boolean {
    while (this.#network.length > 0) this.act({ type: 'deliver', which: 0 })
    return this.#store.entries.length === 0
  }

  /** Replaces the receiver's store by a copy that had applied only `cursor` entries. */
  receiverLoses(cursor: number): void {
    this.#receiver = { ...this.#receiver, cursor, tag: 1000 + cursor - 1 }
  }

  /** A sender without a connection has only its store. */
  #disconnect(): void {
    this.#armedMs = null
    this.#hellos = []
    this.#state = initialSender(this.#position())
  }

  #last(): number {
    return this.#store.base + this.#store.entries.length
  }

  #position(): { epoch: string; base: number; last: number } {
    return { epoch: this.#store.epoch, base: this.#store.base, last: this.#last() }
  }

  #tagAt(seq: number): number | undefined {
    const { base, baseTag, entries } = this.#store
    return seq === base ? baseTag : entries[seq - base - 1]?.tag
  }

  #cut(through: number): void {
    const { base, entries, epoch } = this.#store
    const count = through - base
    if (count <= 0) return
    this.#store = { epoch, base: through, baseTag: entries[count - 1]!.tag, entries: entries.slice(count) }
  }

  #sendHello(): void {
    const { base, sent } = this.#state
    this.#hellos.push({ monotonic: ++this.#time, epoch: this.#store.epoch, base, sent })
    this.#network.push({
      kind: 'hello',
      session: this.#session,
      monotonic: this.#time,
      epoch: this.#store.epoch,
    })
  }

  /** Renumbers the entries that are not acknowledged, as `edge/journal/outbox.ts` does. */
  #newEpoch(): void {
    this.forks++
    this.#store = { ...this.#store, epoch: `epoch-${++this.#numbers}`, base: 0, baseTag: 0 }
    this.#state = initialSender(this.#position())
    this.#sendHello()
  }

  #step(event: SenderEvent): void {
    const { state, effects } = stepSender(this.#state, event, this.#options.limits)
    this.#state = state
    for (const effect of effects)
      switch (effect.type) {
        case 'send':
          this.#send(effect)
          break
        case 'ask':
          this.asks++
          this.#sendHello()
          break
        case 'forget':
          this.#forget(effect.through)
          break
        case 'arm':
          this.#armedMs = effect.afterMs
          break
        case 'disarm':
          this.#armedMs = null
          break
        case 'fork':
          this.#newEpoch()
          break
      }
  }

  #send({ first, entries: most, bytes: mostBytes }: Extract<SenderEffect, { type: 'send' }>): void {
    this.sentBatches++
    const { base, epoch, entries } = this.#store
    const count = Math.min(most, Math.max(1, Math.floor(mostBytes / ENTRY_BYTES)))
    const slice = entries.slice(first - base - 1, first - base - 1 + count)
    if (slice.length === 0 || first <= base)
      this.violations.push(`sent ${first}+${count} of ${base}..${this.#last()}`)
    this.#network.push({
      kind: 'batch',
      epoch,
      first,
      previousTag: this.#tagAt(first - 1)!,
      oldest: base + 1,
      entries: slice,
    })
    const bytes = slice.length * ENTRY_BYTES
    this.sentBytes += bytes
    this.#step({ type: 'sent', last: first + slice.length - 1, bytes, atMs: this.#time })
    const ahead = this.#state.outstanding.reduce((sum, batch) => sum + batch.bytes, 0)
    const { windowBytes, maxWindowBytes } = this.#options.limits
    // An entry longer than a batch is sent alone, and exceeds the window.
    if (ahead > Math.max(windowBytes, maxWindowBytes) + ENTRY_BYTES)
      this.violations.push(`${ahead} bytes ahead of the acknowledgement`)
  }

  #forget(through: number): void {
    const applied = new Set(
      this.applied.filter(({ epoch }) => epoch === this.#store.epoch).map(({ value }) => value),
    )
    for (const { value } of this.#store.entries.slice(0, through - this.#store.base))
      if (!applied.has(value)) this.violations.push(`forgot ${value} before it was applied`)
    this.#cut(through)
  }

  #receive(message: Message): void {
    switch (message.kind) {
      case 'hello': {
        const judged = judgeEpoch(this.#receiver.epoch, message.epoch, (epoch) => this.#left.has(epoch))
        if (judged === 'new') {
          if (this.#receiver.epoch !== null) this.#left.add(this.#receiver.epoch)
          this.#receiver = { epoch: message.epoch, cursor: 0, tag: 0 }
        }
        const restart = judged === 'left'
        const { cursor, tag } = this.#receiver
        const { session, monotonic: answers, epoch } = message
        this.#network.push({ kind: 'welcome', session, answers, epoch, cursor, tag, restart })
        return
      }
      case 'welcome': {
        const { cursor } = message
        const hello = this.#hellos.find(({ monotonic }) => monotonic === message.answers)
        if (message.session !== this.#session || hello?.epoch !== this.#store.epoch) return
        if (message.epoch !== this.#store.epoch) return
        this.#hellos = this.#hellos.filter(({ monotonic }) => monotonic > hello.monotonic)
        if (message.restart) return this.#newEpoch()
        const ours = isOurs(message, this.#position(), (seq) => this.#tagAt(seq))
        const atLeast = this.#options.lossy ? 0 : hello.base
        return this.#step({ type: 'connected', cursor, ours, atLeast, sentBefore: hello.sent })
      }
      case 'batch': {
        const head = { ...message, tags: message.entries.map((entry) => entry.tag) }
        const verdict = judgeBatch(this.#receiver, head, { lossy: this.#options.lossy })
        if (verdict.kind === 'foreign') return
        if (verdict.kind === 'apply') {
          for (const { value } of message.entries.slice(verdict.skip))
            this.applied.push({ epoch: message.epoch, value })
          this.#receiver = verdict.next
        }
        const { cursor, tag } = this.#receiver
        this.#network.push({
          kind: 'ack',
          epoch: message.epoch,
          cursor,
          tag,
          resend: verdict.kind === 'gap',
          fork: verdict.kind === 'fork',
        })
        return
      }
      case 'ack': {
        const { epoch, cursor, resend, fork } = message
        const ours =
          epoch === this.#store.epoch && isOurs(message, this.#position(), (seq) => this.#tagAt(seq))
        return this.#step({ type: 'acked', epoch, cursor, ours, resend, fork, atMs: this.#time })
      }
    }
  }
}
