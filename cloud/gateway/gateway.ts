import { z } from 'zod'
import { backoffMs } from '../../protocol/model/backoff.ts'
import type { Cancel } from '../../protocol/model/runtime.ts'
import { CommandResult } from '../../protocol/mqtt/command.ts'
import {
  downTopic,
  nudgeTopic,
  parseUpTopic,
  upFilter,
  type DownChannel,
} from '../../protocol/mqtt/topics.ts'
import type { MqttTransport, OpenTransport } from '../../protocol/mqtt/transport.ts'
import { background, everyInBackground } from '../platform/work/background.ts'
import type { CloudContext } from '../platform/context.ts'
import { createCommands } from './commands.ts'
import type { Commands } from './command-outcome.ts'
import { decode } from './decode.ts'
import type { HubDomain } from './domain.ts'
import { defaultGatewaySettings, type GatewaySettings } from '../platform/settings/gateway-settings.ts'
import { HubClocks } from './hub-clocks.ts'
import { HubLink } from './hub-link.ts'
import { heldHubs } from './leases.ts'
import { waitingHubs } from './outbox-store.ts'
import { createPeers } from './peers.ts'

export interface GatewayOptions {
  context: CloudContext
  openTransport: OpenTransport
  /** Names this life of this process in leases: unique to it. */
  processId: string
  /** What the hubs' entries mean; the real one by default. */
  domain: HubDomain
  settings?: Partial<GatewaySettings>
}

/** The hubs, over MQTT (protocol/mqtt/SPEC.md). */
export interface Gateway {
  start(): void
  /** Stops in good order: other processes may take the hubs over at once. */
  stop(): Promise<void>
  commands: Commands
  /** Whether the broker is connected. */
  isConnected(): boolean
}

const Nudge = z.object({ hub_id: z.int() })

export function createGateway(options: GatewayOptions): Gateway {
  const { context, openTransport, processId, domain } = options
  const settings = { ...defaultGatewaySettings, ...options.settings }
  const { runtime, log, db } = context
  const clocks = new HubClocks(runtime.clock)
  const links = new Map<number, HubLink>()
  let transport: MqttTransport | undefined
  let running = false
  let connected = false
  let attempt = 0
  let cancels: Cancel[] = []
  let cancelReconnect: Cancel = () => {}

  const commands = createCommands({
    context,
    settings,
    clocks,
    hail: (hubId) => linkOf(hubId).hail(),
    publish: (hubId, command) => {
      if (!connected) return false
      publish(hubId, 'command', command)
      return true
    },
  })

  const peers = createPeers({
    context,
    processId,
    answerMs: settings.answerMs,
    publish: (topic, payload) => {
      if (connected) void transport?.publish(topic, payload)
    },
    onReleased(hubIds) {
      for (const link of links.values()) link.othersGone()
      // A hub that says hello finds its new holder at once, not with its next heartbeat.
      for (const hubId of hubIds) linkOf(hubId).hail()
    },
  })

  function publish(hubId: number, channel: DownChannel, message: object): void {
    // Whether the broker took it proves nothing (SPEC §1): the outcome is of no interest.
    if (connected) void transport?.publish(downTopic(hubId, channel), JSON.stringify(message))
  }

  function linkOf(hubId: number): HubLink {
    const known = links.get(hubId)
    if (known) return known
    const link = new HubLink(hubId, {
      context,
      settings,
      domain,
      processId,
      clocks,
      publish,
      onCommandFinished: (commandId) => commands.onFinished(commandId),
    })
    links.set(hubId, link)
    return link
  }

  function onMessage(topic: string, payload: string): void {
    if (!running) return
    if (topic === nudgeTopic) {
      const nudge = decode(Nudge, payload)
      if (nudge) links.get(nudge.hub_id)?.look()
      return
    }
    if (peers.receive(topic, payload)) return
    const address = parseUpTopic(topic)
    if (!address) return
    const { hubId, channel } = address
    if (channel !== 'result') return linkOf(hubId).receive(channel, payload)
    const result = decode(CommandResult, payload)
    if (!result) return log.warn({ hubId }, 'result of a hub does not fit its schema')
    commands.onResult(hubId, result, links.get(hubId)?.isHeld ?? false)
  }

  async function resume(): Promise<void> {
    const held = await heldHubs(db.kysely, processId, runtime.clock.now())
    for (const [hubId, link] of links) link.reconnected(held.has(hubId))
  }

  function connect(): void {
    const will = { ...peers.will, retain: false }
    transport = openTransport(
      { subscribe: [upFilter, nudgeTopic, ...peers.topics], will },
      {
        onConnect() {
          log.info({}, 'connected to the broker')
          connected = true
          attempt = 0
          background(context, 'broker found', resume)
          peers.connected()
        },
        onDisconnect(reason) {
          transport = undefined
          const delayMs = backoffMs(attempt++, settings.backoff, runtime.random)
          log.warn({ reason, delayMs }, 'no connection to the broker')
          cancelReconnect = runtime.clock.after(delayMs, connect)
          if (!connected) return
          connected = false
          peers.disconnected()
          for (const link of links.values()) link.disconnected()
        },
        onMessage,
      },
    )
  }

  /** An outbox has grown by a transaction of this process: its holder is to look. */
  function onWake(hubId: number): void {
    const link = links.get(hubId)
    if (link?.isHeld) link.look()
    else if (connected) void transport?.publish(nudgeTopic, JSON.stringify({ hub_id: hubId }))
  }

  return {
    commands,
    isConnected: () => connected,
    start() {
      running = true
      commands.start()
      connect()
      cancels = [
        db.onWake(onWake),
        everyInBackground(context, settings.pollMs, 'look into the outboxes', async () => {
          for (const hubId of await waitingHubs(db.kysely)) links.get(hubId)?.look()
        }),
      ]
    },
    async stop() {
      running = false
      for (const cancel of cancels) cancel()
      await commands.stop()
      await Promise.all([...links.values()].map((link) => link.end()))
      await peers.leave()
      connected = false
      cancelReconnect()
      transport?.close()
    },
  }
}
