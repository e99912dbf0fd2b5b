import type { Checkpoint } from '../../protocol/model/checkpoint.ts'
import { randomHex } from '../../protocol/model/ids.ts'
import type { Log } from '../../protocol/model/log.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import type { Command, CommandResult } from '../../protocol/mqtt/command.ts'
import type {
  Ack,
  Batch,
  CloudTime,
  Heartbeat as HeartbeatMessage,
  Hello,
  Later,
  Presence,
  Welcome,
} from '../../protocol/mqtt/session.ts'
import { downFilter, upTopic } from '../../protocol/mqtt/topics.ts'
import type { UpChannel } from '../../protocol/mqtt/topics.ts'
import type { MqttTransport, OpenTransport } from '../../protocol/mqtt/transport.ts'
import type { Reach } from '../../protocol/stream/sender.ts'
import { MQTT_PROTOCOL_VERSION } from '../../protocol/mqtt/version.ts'
import type { HubCore } from '../core/hub-core.ts'
import type { Inbox } from '../journal/inbox.ts'
import type { Outbox, OutboxStream } from '../journal/outbox.ts'
import { StorageError } from '../journal/storage-error.ts'
import { judgeCommand, createInbound, createStreamReceiver, refusal, type StreamReceiver } from './inbound.ts'
import { Heartbeat, Hellos, vitalsDue } from './hello.ts'
import type { SyncSettings } from '../../protocol/settings/hub-limits.ts'
import { StreamSender } from './stream-sender.ts'

/** The part of the hub's core that the sync uses. */
export type SyncCore = Pick<
  HubCore,
  'applyCloudEntry' | 'execute' | 'health' | 'onHealthChange' | 'setCloudClock' | 'restartLedger'
> &
  Partial<Pick<HubCore, 'noteStall'>>

export interface SyncOptions {
  runtime: Runtime
  log: Log
  hubId: number
  openTransport: OpenTransport
  outbox: Outbox
  inbox: Inbox
  core: SyncCore
  /** Name and version for the hello. */
  software: string
  /** What became of the desired state, for the hello. */
  desired?: () => Hello['desired']
  /** The hub can move to another cell. */
  canMove?: boolean | undefined
  /** The certificate with which the hub logs in; undefined if it uses a password. `endsAt`: milliseconds since the Unix epoch. */
  loginCertificate?: (() => { endsAt: number } | undefined) | undefined
  /** A time that has passed, whatever the board's clock shows: the cloud, or the begin of the certificate, proves it. */
  provenTime?: (() => number) | undefined
  /** Whether this version is on trial: the cloud welcomes it, but neither stream moves. */
  isOnTrial?: (() => boolean) | undefined
  checkpoint: Checkpoint
  settings: SyncSettings
  /** Figures of the board and the service. */
  vitals?: (() => HeartbeatMessage['vitals']) | undefined
}

interface SessionOptions extends SyncOptions {
  /** Id of this process of the service: 128 random bits. */
  instance: string
  /** The amount that is sent at once, on this connection and the next ones. */
  reach: Reach
  /** The cloud has answered. */
  onWelcome(): void
  /** `welcomed`: the cloud had answered on this connection. */
  onEnd(reason: string, welcomed: boolean): void
}

/** A session's state after it has connected to the broker. */
interface Connected {
  /** On the monotonic clock. */
  connectedAtMs: number
  hellos: Hellos
  heartbeat: Heartbeat
  senders: Record<OutboxStream, StreamSender>
  receiver: StreamReceiver
  lastReceivedMs: number | undefined
}

/** `greeting`: connected, without an answer of the cloud yet. `lastReceivedMs` is on the monotonic clock. */
type SessionState =
  | { phase: 'connecting' }
  | ({ phase: 'greeting' | 'welcomed' } & Connected)
  | { phase: 'ended'; lastReceivedMs: number | undefined }
export type SessionPhase = SessionState['phase']

/** One connection and its session (SPEC §3). An ended session does nothing more. */
export class Session {
  readonly id: string
  readonly #options: SessionOptions
  readonly #transport: MqttTransport
  readonly #vitalsDue: () => HeartbeatMessage['vitals']
  #state: SessionState = { phase: 'connecting' }

  /** Starts to connect. */
  constructor(options: SessionOptions) {
    const { hubId, runtime, log, settings } = options
    this.#options = options
    this.#vitalsDue = vitalsDue(runtime.clock, options.vitals)
    this.id = randomHex(runtime.random, 16)
    const inbound = createInbound(hubId, settings.maxMessage, log, {
      welcome: (welcome) => this.#onWelcome(welcome),
      hail: () => this.#connected?.hellos.sendSoon(),
      later: (later) => this.#onLater(later),
      entries: (batch) => this.#onBatch(batch),
      ack: (ack) => this.#onAck(ack),
      command: (command) => this.#onCommand(command),
    })
    this.#transport = options.openTransport(
      {
        subscribe: [downFilter(hubId)],
        will: { topic: this.#presenceTopic, payload: this.#presence({ online: false }), retain: true },
      },
      {
        onConnect: () => this.#onConnect(),
        onDisconnect: (reason) => this.#onDisconnect(reason),
        onMessage: (topic, payload) => {
          const state = this.#connected
          if (!state) return
          state.lastReceivedMs = runtime.clock.monotonic()
          this.#take(() => inbound(topic, payload))
        },
      },
    )
  }

  get phase(): SessionPhase {
    return this.#state.phase
  }

  /** The time of the cloud's last message on the monotonic clock; undefined before the first message. */
  get lastReceivedMs(): number | undefined {
    return this.#state.phase === 'connecting' ? undefined : this.#state.lastReceivedMs
  }

  /** Milliseconds since the broker connected without an answer of the cloud; undefined in every other phase. */
  get unansweredMs(): number | undefined {
    const state = this.#state
    return state.phase === 'greeting'
      ? this.#options.runtime.clock.monotonic() - state.connectedAtMs
      : undefined
  }

  /** The outbox has changed. */
  refresh(stream: OutboxStream): void {
    this.#connected?.senders[stream].refresh()
  }

  sendHello(): void {
    this.#connected?.hellos.sendSoon()
  }

  healthChanged(): void {
    this.#connected?.heartbeat.changed()
  }

  /** Publishes goodbye and ends the connection. `onEnd` is not called. */
  close(): void {
    if (this.#state.phase === 'ended') return
    if (this.#connected) void this.#publishPresence({ online: false, goodbye: true })
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

  #presence(presence: Omit<Presence, 'session'>): string {
    return JSON.stringify({ session: this.id, ...presence } satisfies Presence)
  }

  async #publishPresence(presence: Omit<Presence, 'session'>): Promise<void> {
    await this.#transport.publish(this.#presenceTopic, this.#presence(presence), { retain: true })
  }

  #publish(channel: UpChannel, message: object | string): void {
    if (!this.#connected) return
    const payload = typeof message === 'string' ? message : JSON.stringify(message)
    void this.#transport.publish(upTopic(this.#options.hubId, channel), payload)
  }

  /**
   * While the storage fails, a message counts as lost: the cloud repeats messages that are not acknowledged
   * or answered.
   */
  #take(handle: () => void): void {
    try {
      handle()
    } catch (error) {
      if (!(error instanceof StorageError)) throw error
      this.#options.log.warn({}, 'a message from the cloud is dropped: the storage fails')
    }
  }

  #onConnect(): void {
    if (this.#state.phase !== 'connecting') return
    const { runtime, log, settings, inbox, checkpoint, core } = this.#options
    const hellos = new Hellos(runtime, settings, (monotonic) => this.#sendHello(monotonic))
    const heartbeat = new Heartbeat(runtime, settings, () => this.#beat())
    const receiver = createStreamReceiver({
      inbox,
      log,
      checkpoint,
      applyEntry: (body, leaveOut) => core.applyCloudEntry(body, leaveOut),
      publish: (ack) => this.#publish('ack', ack),
      onForeign: () => hellos.sendSoon(),
    })
    const senders = {
      ledger: this.#sender('ledger', hellos),
      telemetry: this.#sender('telemetry', hellos),
    }
    const connectedAtMs = runtime.clock.monotonic()
    this.#options.reach.connected()
    this.#state = {
      phase: 'greeting',
      connectedAtMs,
      hellos,
      heartbeat,
      senders,
      receiver,
      lastReceivedMs: undefined,
    }
    log.debug({ session: this.id }, 'connected to the broker')
    void this.#publishPresence({ online: true })
    hellos.say()
  }

  #sender(stream: OutboxStream, hellos: Hellos): StreamSender {
    const { outbox, runtime, checkpoint, settings, log, reach } = this.#options
    const usual = { ...settings.stream, ...settings[stream], batchBytes: settings.batchBytes }
    const channel = stream === 'ledger' ? 'entries' : 'telemetry'
    return new StreamSender({
      stream,
      outbox,
      clock: runtime.clock,
      checkpoint,
      limits: () => reach.limits(usual, runtime.clock.monotonic()),
      onProgress: (bytes) => reach.acked(bytes),
      lingerMs: settings.lingerMs,
      publish: (payload) => this.#publish(channel, payload),
      onFork: (isAhead) => {
        log.warn({ stream }, "the cloud's history is not this store's: a new epoch begins")
        // The next answer of the cloud repeats that a new epoch is due.
        if (!this.#beginEpoch(stream, 'fork', isAhead)) hellos.sendAgain()
      },
      onNewEpoch: () => hellos.sendSoon(),
      onAsk: () => hellos.sendSoon(),
    })
  }

  /** Returns false if no epoch was started: the storage fails, or the hub must wait for controllers. */
  #beginEpoch(stream: OutboxStream, reason: string, isAhead: boolean): boolean {
    const { core, outbox } = this.#options
    if (stream === 'ledger') return core.restartLedger(reason, isAhead ? 'ahead' : undefined)
    try {
      outbox.newEpoch(stream)
      return true
    } catch (error) {
      if (!(error instanceof StorageError)) throw error
      return false
    }
  }

  #onDisconnect(reason: string): void {
    if (this.#state.phase === 'ended') return
    const welcomed = this.#state.phase === 'welcomed'
    this.#end()
    this.#options.onEnd(reason, welcomed)
  }

  #end(): void {
    const state = this.#connected
    this.#state = { phase: 'ended', lastReceivedMs: state?.lastReceivedMs }
    if (state) {
      const isWaiting = Object.values(state.senders).some((sender) => sender.isWaiting())
      this.#options.reach.ended(isWaiting, this.#options.runtime.clock.monotonic())
    }
    state?.hellos.stop()
    state?.heartbeat.stop()
    state?.senders.ledger.stop()
    state?.senders.telemetry.stop()
  }

  #sendHello(monotonic: number): void {
    const { inbox, runtime, instance, software, desired, canMove, checkpoint } = this.#options
    const state = this.#connected
    if (!state) return
    this.#publish('hello', {
      protocol: MQTT_PROTOCOL_VERSION,
      session: this.id,
      instance,
      software,
      ledger: state.senders.ledger.announce(monotonic),
      telemetry: state.senders.telemetry.announce(monotonic),
      inbox: inbox.position(),
      desired: desired?.(),
      ...(canMove && { can_move: true }),
      clock: { wall: runtime.clock.now(), monotonic },
    } satisfies Hello)
    checkpoint('sync.after-hello')
  }

  #beat(): void {
    const vitals = this.#vitalsDue()
    const heartbeat = { session: this.id, ...this.#health(), ...(vitals && { vitals }) }
    this.#publish('heartbeat', heartbeat satisfies HeartbeatMessage)
  }

  /** The hub's current state for the cloud. */
  #health(): Omit<HeartbeatMessage, 'session'> {
    const { runtime, core } = this.#options
    return { monotonic: runtime.clock.monotonic(), health: core.health() }
  }

  #onWelcome(welcome: Welcome): void {
    const { core, runtime, log } = this.#options
    const state = this.#connected
    if (!state) return
    const { hellos, heartbeat, senders, receiver } = state
    const { answers } = welcome
    // The cloud knows another session, and accepts this one only after a new hello.
    if (welcome.session !== this.id) return hellos.sendSoon()
    if (!senders.ledger.isAnswerable(answers) || !senders.telemetry.isAnswerable(answers)) return
    if (welcome.protocol !== MQTT_PROTOCOL_VERSION)
      return log.error({ protocol: welcome.protocol }, 'the cloud speaks another protocol')
    this.#state = { ...state, phase: 'welcomed' }
    this.#options.onWelcome()
    const now = runtime.clock.monotonic()
    core.setCloudClock(welcome.clock.wall - now, { passing: false, roundTripMs: now - answers })
    heartbeat.start()
    if (this.#options.isOnTrial?.()) return hellos.answered(() => this.lastReceivedMs ?? 0)
    // If the storage fails, this throws, and the unanswered hello is repeated.
    receiver.takeUp(welcome.outbox.epoch)
    hellos.answered(() => this.lastReceivedMs ?? 0)
    senders.telemetry.welcomed(welcome.telemetry, answers)
    // The cloud may have judged a repeated hello by entries that came after it. Then no restart is needed.
    const restart = welcome.ledger.restart && !senders.ledger.knows(welcome.ledger)
    const isAhead = welcome.ledger.left || senders.ledger.isAhead(welcome.ledger)
    if (!restart) senders.ledger.welcomed(welcome.ledger, answers)
    else if (!this.#beginEpoch('ledger', 'the cloud asked for a new epoch', isAhead)) hellos.sendAgain()
  }

  /** A message for another session is ignored: the hello of this session is not answered yet. */
  #onLater({ session, after_ms }: Later): void {
    if (session === this.id) this.#connected?.hellos.sendLater(after_ms)
  }

  /** First the time, because the batch's entries were dated by it. */
  #onBatch(batch: Batch): void {
    this.#hearClock(batch.clock)
    if (!this.#options.isOnTrial?.()) this.#welcomed?.receiver.receive(batch)
  }

  /** The cloud's clock may be corrected while a session lasts. */
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
    if (judged === 'pass')
      return core.execute(command, (result) => this.#answer({ ...result, after: this.#health() }))
    log.warn({ command_id: command.command_id, judged }, 'a command is refused')
    this.#answer(refusal(command, judged))
  }

  /** Sent only over this connection: the ledger reports the result too. */
  #answer(result: CommandResult): void {
    const { checkpoint } = this.#options
    checkpoint('sync.before-result')
    this.#publish('result', result)
    checkpoint('sync.after-result')
  }
}
