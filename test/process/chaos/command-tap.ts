import { parser } from 'mqtt-packet'
import { Command } from '../../../protocol/mqtt/command.ts'
import { Hello } from '../../../protocol/mqtt/session.ts'
import { downTopic, upTopic } from '../../../protocol/mqtt/topics.ts'
import type { Clock } from '../../../protocol/model/runtime.ts'
import type { Direction } from '../../../simulator/demo/proxy.ts'

export interface CommandTap {
  listenIn(): (direction: Direction, chunk: Buffer) => void
  /** Commands that came to the hub only in another session or after their time. */
  staleOnly(): Set<string>
  /** Number of commands that came to the hub. */
  seen(): number
}

/**
 * Listens on the hub's line to the broker, for I2. A hello contains the hub's monotonic clock. That clock has
 * since advanced at least by the time since the hello.
 */
export function createCommandTap(hubId: number, clock: Clock): CommandTap {
  const fresh = new Set<string>()
  const stale = new Set<string>()
  return {
    listenIn() {
      let session: string | undefined
      let offset = -Infinity
      const hear = {
        up(topic: string, payload: string): void {
          if (topic !== upTopic(hubId, 'hello')) return
          const hello = Hello.parse(JSON.parse(payload))
          session = hello.session
          offset = Math.max(offset, hello.clock.monotonic - clock.monotonic())
        },
        down(topic: string, payload: string): void {
          if (topic !== downTopic(hubId, 'command')) return
          const command = Command.parse(JSON.parse(payload))
          const isOver = offset + clock.monotonic() > command.expires_monotonic
          const fits = command.session === session && !isOver
          if (fits) fresh.add(command.command_id)
          else stale.add(command.command_id)
        },
      }
      const streams = { up: parser(), down: parser() }
      for (const direction of ['up', 'down'] as const)
        streams[direction].on('packet', (packet) => {
          if (packet.cmd === 'publish') hear[direction](packet.topic, packet.payload.toString())
        })
      return (direction, chunk) => void streams[direction].parse(chunk)
    },
    staleOnly: () => new Set([...stale].filter((id) => !fresh.has(id))),
    seen: () => new Set([...stale, ...fresh]).size,
  }
}
