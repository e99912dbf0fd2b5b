import { randomHex } from '../../protocol/model/ids.ts'
import type { Cancel } from '../../protocol/model/runtime.ts'
import type { Command, CommandReason, CommandResult } from '../../protocol/mqtt/command.ts'
import type { Ack, Heartbeat, Hello, Presence, Welcome } from '../../protocol/mqtt/session.ts'
import { downFilter, upTopic } from '../../protocol/mqtt/topics.ts'
import type { UpChannel } from '../../protocol/mqtt/topics.ts'
import { MQTT_PROTOCOL_VERSION } from '../../protocol/mqtt/version.ts'
import type { OutboxStream } from '../journal/outbox.ts'
import { judgeCommand } from './fence.ts'
import { startHeartbeat } from './heartbeat.ts'
import type { Heartbeat as Beats } from './heartbeat.ts'
import { createInbound } from './inbound.ts'
import { createStreamReceiver } from './stream-receiver.ts'
import { createStreamSender } from './stream-sender.ts'
import type { StreamSender } from './stream-sender.ts'
import type { SyncOptions } from './sync-options.ts'

export interface SessionOptions extends SyncOptions {
  /** `welcomed`: the cloud had answered on it. */
  onEnd(reason: string, welcomed: boolean): void
}

/** `greeting`: connected, and without an answer of the cloud yet. */
export type SessionPhase = 'connecting' | 'greeting' | 'welcomed' | 'ended'

/** One connection, and the session on it (SPEC §3). Once ended it does nothing more. */
export interface Session {
  readonly id: string
  readonly phase: SessionPhase
  /** When the cloud was last heard, on the monotonic clock; undefined before the first message. */
  readonly lastHeardMs: number | undefined
  /** The outbox has changed. */
  refresh(stream: OutboxStream): void
  healthChanged(): void
  /** Says goodbye, and ends the connection. `onEnd` is not called. */
  close(): void
}

export function openSession(options: SessionOptions): Session {
  const { runtime, log, hubId, outbox, inbox, core, checkpoint, settings } = options
  const { clock } = runtime
  const id = randomHex(runtime.random, 16)
  let phase: SessionPhase = 'connecting'
  let lastHeardMs: number | undefined
  /** The monotonic clock in the latest hello. */
  let helloAtMs = -Infinity
  let cancelHello: Cancel | undefined
  let beats: Beats | undefined

  const presence = (online: boolean): string => JSON.stringify({ session: id, online } satisfies Presence)
  const presenceTopic = upTopic(hubId, 'presence')
  const senders: Record<OutboxStream, StreamSender> = {
    ledger: sender('ledger'),
    telemetry: sender('telemetry'),
  }
  const receiver = createStreamReceiver({
    inbox,
    log,
    checkpoint,
    applyEntry: (body) => core.applyCloudEntry(body),
    publish: (ack) => publish('ack', ack),
    onForeign: sayHelloSoon,
  })
  const inbound = createInbound(hubId, settings.maxMessage, log, {
    welcome: onWelcome,
    hail: sayHelloSoon,
    entries(batch) {
      if (phase === 'welcomed') receiver.receive(batch)
    },
    ack: onAck,
    command: onCommand,
  })

  const transport = options.openTransport(
    {
      subscribe: [downFilter(hubId)],
      will: { topic: presenceTopic, payload: presence(false), retain: true },
    },
    {
      onConnect() {
        if (phase !== 'connecting') return
        phase = 'greeting'
        log.info({ session: id }, 'connected to the broker')
        void transport.publish(presenceTopic, presence(true), { retain: true })
        sayHello()
        beats = startHeartbeat(clock, settings, beat)
      },
      onDisconnect(reason) {
        if (phase === 'ended') return
        const welcomed = phase === 'welcomed'
        end()
        options.onEnd(reason, welcomed)
      },
      onMessage(topic, payload) {
        if (phase === 'connecting' || phase === 'ended') return
        lastHeardMs = clock.monotonic()
        inbound(topic, payload)
      },
    },
  )

  function publish(channel: UpChannel, message: object | string): void {
    if (phase === 'connecting' || phase === 'ended') return
    const payload = typeof message === 'string' ? message : JSON.stringify(message)
    void transport.publish(upTopic(hubId, channel), payload)
  }

  function sender(stream: OutboxStream): StreamSender {
    const channel = stream === 'ledger' ? 'entries' : 'telemetry'
    return createStreamSender({
      stream,
      outbox,
      clock,
      checkpoint,
      limits: settings[stream],
      lingerMs: settings.lingerMs,
      batchBytes: settings.batchBytes,
      publish: (payload) => publish(channel, payload),
      onFork() {
        log.warn({ stream }, "the cloud's history is not this store's: a new epoch begins")
        if (stream === 'ledger') core.restartLedger('fork')
        else outbox.newEpoch(stream)
      },
      onNewEpoch: sayHelloSoon,
      onTimeout(retries) {
        if (retries >= settings.stalledRetries) sayHelloSoon()
      },
    })
  }

  function sayHello(): void {
    if (phase === 'connecting' || phase === 'ended') return
    cancelHello?.()
    // Strictly later than the one before: the cloud's answer names it.
    const monotonic = Math.max(clock.monotonic(), helloAtMs + 0.001)
    helloAtMs = monotonic
    publish('hello', {
      protocol: MQTT_PROTOCOL_VERSION,
      session: id,
      software: options.software,
      ledger: senders.ledger.announce(),
      telemetry: senders.telemetry.announce(),
      inbox: inbox.position(),
      clock: { wall: clock.now(), monotonic },
    } satisfies Hello)
    checkpoint('sync.after-hello')
    cancelHello = clock.after(settings.helloMs, sayHello)
  }

  /** At once, or as soon as the last one is `hailMs` old. */
  function sayHelloSoon(): void {
    if (phase === 'connecting' || phase === 'ended') return
    const waitMs = helloAtMs + settings.hailMs - clock.monotonic()
    if (waitMs <= 0) return sayHello()
    cancelHello?.()
    cancelHello = clock.after(waitMs, sayHello)
  }

  /** An answered hello is repeated when the cloud has been silent for long: its process may have died. */
  function watchQuiet(): void {
    const quietForMs = clock.monotonic() - (lastHeardMs ?? 0)
    if (quietForMs >= settings.quietMs) return sayHello()
    cancelHello = clock.after(settings.quietMs - quietForMs, watchQuiet)
  }

  function onWelcome(welcome: Welcome): void {
    // The cloud believes in another session, and will not hear this one before a new hello.
    if (welcome.session !== id) return sayHelloSoon()
    if (welcome.answers !== helloAtMs) return
    if (welcome.protocol !== MQTT_PROTOCOL_VERSION)
      return log.error({ protocol: welcome.protocol }, 'the cloud speaks another protocol')
    if (senders.ledger.isOutdated() || senders.telemetry.isOutdated()) return
    phase = 'welcomed'
    cancelHello?.()
    watchQuiet()
    // A repeated hello may have been judged by what came after it: then nothing is wrong.
    const restart = welcome.ledger.restart && !senders.ledger.knows(welcome.ledger)
    core.setCloudClock(welcome.clock.wall - clock.monotonic())
    receiver.takeUp(welcome.outbox.epoch)
    if (!restart) senders.ledger.welcomed(welcome.ledger)
    senders.telemetry.welcomed(welcome.telemetry)
    core.onWelcome({ ...welcome, ledger: { ...welcome.ledger, restart } })
  }

  function onAck(ack: Ack): void {
    if (phase !== 'welcomed') return
    if (ack.stream === 'outbox') return log.warn({ ack }, 'an acknowledgement of what the cloud itself sends')
    senders[ack.stream].acked(ack)
  }

  function onCommand(command: Command): void {
    const judged = judgeCommand(command, id, clock.monotonic())
    if (judged === 'pass') return core.execute(command, answer)
    log.warn({ command_id: command.command_id, judged }, 'a command is refused')
    answer(refusal(command, judged))
  }

  /** Over this connection or not at all: the ledger reports it too. */
  function answer(result: CommandResult): void {
    checkpoint('sync.before-result')
    publish('result', result)
    checkpoint('sync.after-result')
  }

  function beat(): void {
    const monotonic = clock.monotonic()
    publish('heartbeat', { session: id, monotonic, health: core.health() } satisfies Heartbeat)
  }

  function end(): void {
    phase = 'ended'
    cancelHello?.()
    beats?.stop()
    senders.ledger.stop()
    senders.telemetry.stop()
  }

  return {
    id,
    get phase() {
      return phase
    },
    get lastHeardMs() {
      return lastHeardMs
    },
    refresh(stream) {
      senders[stream].refresh()
    },
    healthChanged() {
      beats?.changed()
    },
    close() {
      if (phase === 'ended') return
      if (phase !== 'connecting') void transport.publish(presenceTopic, presence(false), { retain: true })
      end()
      transport.close()
    },
  }
}

function refusal(command: Command, reason: CommandReason): CommandResult {
  const { command_id, session } = command
  return { command_id, session, outcome: 'refused', reason, data: null }
}
