import { healthy } from './health.ts'
import { randomHex } from '../../protocol/model/ids.ts'
import type { Clock } from '../../protocol/model/runtime.ts'
import type { Command, CommandResult } from '../../protocol/mqtt/command.ts'
import type { HubHealth } from '../../protocol/model/hub-health.ts'
import type {
  Ack,
  Batch,
  Erase,
  Hail,
  Hello,
  Later,
  NextCell,
  ReceiverPosition,
  Welcome,
} from '../../protocol/mqtt/session.ts'
import { downFilter, parseDownTopic, upTopic, type UpChannel } from '../../protocol/mqtt/topics.ts'
import type { MqttTransport, OpenTransport } from '../../protocol/mqtt/transport.ts'
import { MQTT_PROTOCOL_VERSION } from '../../protocol/mqtt/version.ts'
import { judgeBatch } from '../../protocol/stream/receiver.ts'
import type { Chance } from '../simulation/chance.ts'

/** An entry of the ledger: a door was forced. */
export const alarm = (subject: string) => ({
  kind: 'alarm',
  at: 1,
  code: 'door_forced',
  subject,
  raised: true,
  detail: '',
})

interface Entry {
  tag: number
  body: unknown
}

/**
 * A hub that is driven by the test and stores received messages in lists. On its own it adopts a welcome's
 * outbox epoch, applies and acknowledges batches (unless `deaf`), answers requests for a hello (unless
 * `ignoresHails`), and retries later.
 */
export class ScriptedHub {
  /** Id of this life of its service, if it sends one. */
  instance: string | undefined
  readonly hubId: number
  readonly #clock: Clock
  readonly #chance: Chance
  readonly #open: OpenTransport
  #transport: MqttTransport | undefined
  session = ''
  deaf = false
  ignoresHails = false
  ledger = { epoch: '', base: 0, baseTag: 0, entries: [] as Entry[] }
  inbox: ReceiverPosition = { epoch: null, cursor: 0, tag: 0 }
  /** Bodies of the outbox that were applied, in order. */
  applied: { kind: string; [key: string]: unknown }[] = []
  welcomes: Welcome[] = []
  hails: Hail[] = []
  acks: Ack[] = []
  /** Orders to erase the secrets of the board. */
  readonly erases: Erase[] = []
  /** Orders to move to another cell. */
  readonly moves: NextCell[] = []
  batches: Batch[] = []
  commands: Command[] = []
  /** Answers commands, if it is set. */
  onCommand: ((command: Command) => Partial<CommandResult> | undefined) | undefined

  constructor(options: { hubId: number; clock: Clock; chance: Chance; openTransport: OpenTransport }) {
    this.hubId = options.hubId
    this.#clock = options.clock
    this.#chance = options.chance
    this.#open = options.openTransport
    this.newEpoch()
  }

  get monotonic(): number {
    return this.#clock.monotonic()
  }

  /** Connects with a new session and says hello. */
  connect(): void {
    this.session = randomHex(this.#chance, 16)
    const will = JSON.stringify({ session: this.session, online: false })
    const transport = this.#open(
      {
        subscribe: [downFilter(this.hubId)],
        will: { topic: upTopic(this.hubId, 'presence'), payload: will, retain: true },
      },
      {
        onConnect: () => {
          this.publish('presence', { session: this.session, online: true }, true)
          this.hello()
        },
        // The broker closes the former connection when this one is open.
        onDisconnect: () => {
          if (this.#transport === transport) this.#transport = undefined
        },
        onMessage: (topic, payload) => this.#onMessage(topic, payload),
      },
    )
    this.#transport = transport
  }

  publish(channel: UpChannel, message: unknown, retain = false): void {
    const payload = typeof message === 'string' ? message : JSON.stringify(message)
    void this.#transport?.publish(upTopic(this.hubId, channel), payload, { retain })
  }

  hello(changes: Partial<Hello> = {}): Hello {
    const hello: Hello = {
      protocol: MQTT_PROTOCOL_VERSION,
      session: this.session,
      ...(this.instance !== undefined && { instance: this.instance }),
      software: 'scripted',
      ledger: this.position(),
      telemetry: { epoch: 'f'.repeat(32), base: 0, baseTag: 0, last: 0 },
      inbox: { ...this.inbox },
      clock: { wall: this.#clock.now(), monotonic: this.#clock.monotonic() },
      ...changes,
    }
    this.publish('hello', hello)
    return hello
  }

  heartbeat(health: HubHealth = healthy): void {
    this.publish('heartbeat', { session: this.session, monotonic: this.#clock.monotonic(), health })
  }

  position() {
    const { epoch, base, baseTag, entries } = this.ledger
    return { epoch, base, baseTag, last: entries.length }
  }

  newEpoch(): void {
    this.ledger = { epoch: randomHex(this.#chance, 16), base: 0, baseTag: 0, entries: [] }
  }

  append(...bodies: unknown[]): void {
    for (const body of bodies) this.ledger.entries.push({ tag: this.#chance.between(1, 0xffffffff), body })
  }

  /** Entries `first` … `last` of the ledger (1-based) as one batch. */
  batch(first = 1, last = this.ledger.entries.length): Batch {
    const { epoch, entries, base } = this.ledger
    return {
      epoch,
      first,
      previousTag: entries[first - 2]?.tag ?? 0,
      oldest: base + 1,
      entries: entries.slice(first - 1, last),
    }
  }

  sendEntries(first?: number, last?: number): void {
    this.publish('entries', this.batch(first, last))
  }

  #onMessage(topic: string, payload: string): void {
    const message: unknown = JSON.parse(payload)
    switch (parseDownTopic(this.hubId, topic)) {
      case 'welcome':
        return this.#onWelcome(message as Welcome)
      case 'hail':
        this.hails.push(message as Hail)
        if (!this.ignoresHails) this.hello()
        return
      case 'later':
        return void this.#clock.after((message as Later).after_ms, () => this.hello())
      case 'ack':
        this.acks.push(message as Ack)
        return
      case 'entries':
        return this.#onBatch(message as Batch)
      case 'command':
        return this.#onCommand(message as Command)
      case 'erase':
        this.erases.push(message as Erase)
        return
      case 'move':
        this.moves.push(message as NextCell)
        return
      case 'diagnosis':
        // As a hub of the version before, which does not know it.
        return
      case 'certificate':
      case undefined:
        throw new Error(`unexpected topic ${topic}`)
    }
  }

  #onWelcome(welcome: Welcome): void {
    this.welcomes.push(welcome)
    if (welcome.session !== this.session || this.inbox.epoch === welcome.outbox.epoch) return
    this.inbox = { epoch: welcome.outbox.epoch, cursor: 0, tag: 0 }
  }

  #onBatch(batch: Batch): void {
    this.batches.push(batch)
    if (this.deaf) return
    const tags = batch.entries.map((entry) => entry.tag)
    const verdict = judgeBatch(this.inbox, { ...batch, tags }, { lossy: false })
    if (verdict.kind === 'foreign') return
    if (verdict.kind === 'apply') {
      this.applied.push(...(batch.entries.slice(verdict.skip).map(({ body }) => body) as typeof this.applied))
      this.inbox = verdict.next
    }
    this.ack({ resend: verdict.kind === 'gap', fork: verdict.kind === 'fork' })
  }

  ack(changes: Partial<Ack> = {}): void {
    const { epoch, cursor, tag } = this.inbox
    this.publish('ack', { stream: 'outbox', epoch, cursor, tag, resend: false, fork: false, ...changes })
  }

  #onCommand(command: Command): void {
    this.commands.push(command)
    const result = this.onCommand?.(command)
    if (result) this.result(command, result)
  }

  result(command: Command, result: Partial<CommandResult> = {}): void {
    this.publish('result', {
      command_id: command.command_id,
      session: this.session,
      outcome: 'executed',
      reason: null,
      data: {},
      ...result,
    })
  }
}
