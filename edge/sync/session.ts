import type { Checkpoint } from '../../protocol/model/checkpoint.ts'
import { randomHex } from '../../protocol/model/ids.ts'
import type { Log } from '../../protocol/model/log.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import type { Command, CommandReason, CommandResult } from '../../protocol/mqtt/command.ts'
import type {
  Ack,
  Batch,
  CloudTime,
  Heartbeat as HeartbeatMessage,
  Hello,
  Presence,
  Welcome,
} from '../../protocol/mqtt/session.ts'
import { downFilter, upTopic } from '../../protocol/mqtt/topics.ts'
import type { UpChannel } from '../../protocol/mqtt/topics.ts'
import type { MqttTransport, OpenTransport } from '../../protocol/mqtt/transport.ts'
import { MQTT_PROTOCOL_VERSION } from '../../protocol/mqtt/version.ts'
import type { HubCore } from '../core/hub-core.ts'
import type { Inbox } from '../journal/inbox.ts'
import type { Outbox, OutboxStream } from '../journal/outbox.ts'
import { StoreFullError } from '../journal/store.ts'
import { judgeCommand } from './fence.ts'
import { Heartbeat, Hellos } from './hello.ts'
import { createInbound } from './inbound.ts'
import type { SyncSettings } from './settings.ts'
import { createStreamReceiver, type StreamReceiver } from './stream-receiver.ts'
import { createStreamSender, type StreamSender } from './stream-sender.ts'

/** What the hub's core does for the sync, and nothing more. */
export type SyncCore = Pick<
  HubCore,
  | 'applyCloudEntry'
  | 'execute'
  | 'health'
  | 'onHealthChange'
  | 'setCloudClock'
  | 'onWelcome'
  | 'restartLedger'
>

export interface SyncOptions {
  runtime: Runtime
  log: Log
  hubId: number
  openTransport: OpenTransport
  outbox: Outbox
  inbox: Inbox
  core: SyncCore
  /** Name and version, as the hello says it. */
  software: string
  checkpoint: Checkpoint
  settings: SyncSettings
}

export interface SessionOptions extends SyncOptions {
  /** Of this life of the service: 128 random bits. */
  instance: string
  /** `welcomed`: the cloud had answered on it. */
  onEnd(reason: string, welcomed: boolean): void
}

/** What a session has from its connection to the broker on. */
interface Connected {
  hellos: Hellos
  heartbeat: Heartbeat
  senders: Record<OutboxStream, StreamSender>
  receiver: StreamReceiver
  lastHeardMs: number | undefined
}

/** `greeting`: connected, and without an answer of the cloud yet. `lastHeardMs` is on the monotonic clock. */
type SessionState =
  | { phase: 'connecting' }
  | ({ phase: 'greeting' | 'welcomed' } & Connected)
  | { phase: 'ended'; lastHeardMs: number | undefined }
export type SessionPhase = SessionState['phase']

/** One connection, and the session on it (SPEC §3). Once ended it does nothing more. */
export class Session {
  readonly id: string
  readonly #options: SessionOptions
  readonly #transport: MqttTransport
  #state: SessionState = { phase: 'connecting' }

  /** Begins to connect. */
  constructor(options: SessionOptions) {
    const { hubId, runtime, log, settings } = options
    this.#options = options
    this.id = randomHex(runtime.random, 16)
    const inbound = createInbound(hubId, settings.maxMessage, log, {
      welcome: (welcome) => this.#onWelcome(welcome),
      hail: () => this.#connected?.hellos.saySoon(),
      entries: (batch) => this.#onBatch(batch),
      ack: (ack) => this.#onAck(ack),
      command: (command) => this.#onCommand(command),
    })
    this.#transport = options.openTransport(
      {
        subscribe: [downFilter(hubId)],
        will: { topic: this.#presenceTopic, payload: this.#presence(false), retain: true },
      },
      {
        onConnect: () => this.#onConnect(),
        onDisconnect: (reason) => this.#onDisconnect(reason),
        onMessage: (topic, payload) => {
          const state = this.#connected
          if (!state) return
          state.lastHeardMs = runtime.clock.monotonic()
          this.#take(() => inbound(topic, payload))
        },
      },
    )
  }

  get phase(): SessionPhase {
    return this.#state.phase
  }

  /** When the cloud was last heard, on the monotonic clock; undefined before the first message. */
  get lastHeardMs(): number | undefined {
    return this.#state.phase === 'connecting' ? undefined : this.#state.lastHeardMs
  }

  /** The outbox has changed. */
  refresh(stream: OutboxStream): void {
    this.#connected?.senders[stream].refresh()
  }

  healthChanged(): void {
    this.#connected?.heartbeat.changed()
  }

  /** Says goodbye, and ends the connection. `onEnd` is not called. */
  close(): void {
    if (this.#state.phase === 'ended') return
    if (this.#connected) void this.#publishPresence(false)
    this.#end()
    this.#transport.close()
  }

  get #connected(): (SessionState & Connected) | undefined {
    return this.#state.phase === 'connecting' || this.#state.phase === 'ended' ? undefined : this.#state
  }

  get #welcomed(): Connected | undefined {
    return this.#state.phase === 'welcomed' ? this.#state : undefined
  }

  get #presenceTopic(): string {
    return upTopic(this.#options.hubId, 'presence')
  }

  #presence(online: boolean): string {
    return JSON.stringify({ session: this.id, online } satisfies Presence)
  }

  async #publishPresence(online: boolean): Promise<void> {
    await this.#transport.publish(this.#presenceTopic, this.#presence(online), { retain: true })
  }

  #publish(channel: UpChannel, message: object | string): void {
    if (!this.#connected) return
    const payload = typeof message === 'string' ? message : JSON.stringify(message)
    void this.#transport.publish(upTopic(this.#options.hubId, channel), payload)
  }

  /** On a full disk a message is as good as lost: whatever is not acknowledged or answered comes again. */
  #take(handle: () => void): void {
    try {
      handle()
    } catch (error) {
      if (!(error instanceof StoreFullError)) throw error
      this.#options.log.warn({}, 'a message from the cloud is dropped: the disk is full')
    }
  }

  #onConnect(): void {
    if (this.#state.phase !== 'connecting') return
    const { runtime, log, settings, inbox, checkpoint, core } = this.#options
    const hellos = new Hellos(runtime.clock, settings, (monotonic) => this.#sendHello(monotonic))
    const heartbeat = new Heartbeat(runtime.clock, settings, () => this.#beat())
    const receiver = createStreamReceiver({
      inbox,
      log,
      checkpoint,
      applyEntry: (body) => core.applyCloudEntry(body),
      publish: (ack) => this.#publish('ack', ack),
      onForeign: () => hellos.saySoon(),
    })
    const senders = {
      ledger: this.#sender('ledger', hellos),
      telemetry: this.#sender('telemetry', hellos),
    }
    this.#state = { phase: 'greeting', hellos, heartbeat, senders, receiver, lastHeardMs: undefined }
    log.info({ session: this.id }, 'connected to the broker')
    void this.#publishPresence(true)
    hellos.say()
    heartbeat.start()
  }

  #sender(stream: OutboxStream, hellos: Hellos): StreamSender {
    const { outbox, runtime, checkpoint, settings, log, core } = this.#options
    const channel = stream === 'ledger' ? 'entries' : 'telemetry'
    return createStreamSender({
      stream,
      outbox,
      clock: runtime.clock,
      checkpoint,
      limits: settings[stream],
      lingerMs: settings.lingerMs,
      batchBytes: settings.batchBytes,
      publish: (payload) => this.#publish(channel, payload),
      onFork() {
        log.warn({ stream }, "the cloud's history is not this store's: a new epoch begins")
        if (stream === 'ledger') core.restartLedger('fork')
        else outbox.newEpoch(stream)
      },
      onNewEpoch: () => hellos.saySoon(),
      onTimeout(retries) {
        if (retries >= settings.stalledRetries) hellos.saySoon()
      },
    })
  }

  #onDisconnect(reason: string): void {
    if (this.#state.phase === 'ended') return
    const welcomed = this.#state.phase === 'welcomed'
    this.#end()
    this.#options.onEnd(reason, welcomed)
  }

  #end(): void {
    const state = this.#connected
    this.#state = { phase: 'ended', lastHeardMs: state?.lastHeardMs }
    state?.hellos.stop()
    state?.heartbeat.stop()
    state?.senders.ledger.stop()
    state?.senders.telemetry.stop()
  }

  #sendHello(monotonic: number): void {
    const { inbox, runtime, instance, software, checkpoint } = this.#options
    const state = this.#connected
    if (!state) return
    this.#publish('hello', {
      protocol: MQTT_PROTOCOL_VERSION,
      session: this.id,
      instance,
      software,
      ledger: state.senders.ledger.announce(),
      telemetry: state.senders.telemetry.announce(),
      inbox: inbox.position(),
      clock: { wall: runtime.clock.now(), monotonic },
    } satisfies Hello)
    checkpoint('sync.after-hello')
  }

  #beat(): void {
    const monotonic = this.#options.runtime.clock.monotonic()
    const health = this.#options.core.health()
    this.#publish('heartbeat', { session: this.id, monotonic, health } satisfies HeartbeatMessage)
  }

  #onWelcome(welcome: Welcome): void {
    const { core, runtime, log } = this.#options
    const state = this.#connected
    if (!state) return
    const { hellos, senders, receiver } = state
    // The cloud believes in another session, and will not hear this one before a new hello.
    if (welcome.session !== this.id) return hellos.saySoon()
    if (!hellos.isLatest(welcome.answers)) return
    if (welcome.protocol !== MQTT_PROTOCOL_VERSION)
      return log.error({ protocol: welcome.protocol }, 'the cloud speaks another protocol')
    if (senders.ledger.isOutdated() || senders.telemetry.isOutdated()) return
    this.#state = { ...state, phase: 'welcomed' }
    hellos.answered(() => this.lastHeardMs ?? 0)
    // A repeated hello may have been judged by what came after it: then nothing is wrong.
    const restart = welcome.ledger.restart && !senders.ledger.knows(welcome.ledger)
    core.setCloudClock(welcome.clock.wall - runtime.clock.monotonic(), { passing: false })
    receiver.takeUp(welcome.outbox.epoch)
    if (!restart) senders.ledger.welcomed(welcome.ledger)
    senders.telemetry.welcomed(welcome.telemetry)
    core.onWelcome({ ...welcome, ledger: { ...welcome.ledger, restart } })
  }

  /** First the time: what is in the batch was dated by it. */
  #onBatch(batch: Batch): void {
    this.#hearClock(batch.clock)
    this.#welcomed?.receiver.receive(batch)
  }

  /** The cloud's clock may be put right while a session lasts. */
  #hearClock(clock: CloudTime | undefined): void {
    const { core, runtime } = this.#options
    if (this.#welcomed && clock) core.setCloudClock(clock.wall - runtime.clock.monotonic(), { passing: true })
  }

  #onAck(ack: Ack): void {
    this.#hearClock(ack.clock)
    if (!this.#welcomed) return
    if (ack.stream === 'outbox')
      return this.#options.log.warn({ ack }, 'an acknowledgement of what the cloud itself sends')
    this.#welcomed.senders[ack.stream].acked(ack)
  }

  #onCommand(command: Command): void {
    const { core, runtime, log } = this.#options
    const judged = judgeCommand(command, this.id, runtime.clock.monotonic())
    if (judged === 'pass') return core.execute(command, (result) => this.#answer(result))
    log.warn({ command_id: command.command_id, judged }, 'a command is refused')
    this.#answer(refusal(command, judged))
  }

  /** Over this connection or not at all: the ledger reports it too. */
  #answer(result: CommandResult): void {
    const { checkpoint } = this.#options
    checkpoint('sync.before-result')
    this.#publish('result', result)
    checkpoint('sync.after-result')
  }
}

function refusal(command: Command, reason: CommandReason): CommandResult {
  const { command_id, session } = command
  return { command_id, session, outcome: 'refused', reason, data: null }
}
