import { createServer, type Socket } from 'node:net'
import { type GpioAddress, socketLinePort } from '../../../protocol/gpio/socket.ts'
import {
  GPIO_ALIVE_MS,
  GPIO_PROTOCOL_VERSION,
  GpioUserMessage,
  parseGpioMessage,
  type GpioChipMessage,
} from '../../../protocol/gpio/messages.ts'
import type { Log } from '../../../protocol/model/log.ts'
import { every, type Clock } from '../../../protocol/model/runtime.ts'
import type { LinePort } from '../../../protocol/serial/line-port.ts'
import type { GpioBank } from '../../physics/gpio-bank.ts'
import { listenAt } from '../listen.ts'

interface GpioSocketServerOptions {
  bank: GpioBank
  address: GpioAddress
  clock: Clock
  log: Log
}

interface GpioSocketServer {
  /** The listening address, with the assigned port if it was 0. */
  address: GpioAddress
  close(): Promise<void>
}

/** Serves a bank's lines to any number of users (SPEC.md). Rejects if the address cannot be used. */
export async function startGpioSocketServer(options: GpioSocketServerOptions): Promise<GpioSocketServer> {
  const { bank, clock, log } = options
  const users = new Set<LinePort>()
  const driven = new Set<string>()
  const send = (port: LinePort, message: GpioChipMessage) => port.write(JSON.stringify(message))

  const removeListener = bank.onChange((name, level) => {
    for (const port of users) send(port, { type: 'level', name, level })
  })
  const stopAlive = every(clock, GPIO_ALIVE_MS, () => {
    for (const port of users) send(port, { type: 'alive' })
  })

  function serve(socket: Socket): void {
    socket.setNoDelay(true)
    const port = socketLinePort(socket, {
      onOpen() {},
      onLine(line) {
        const message = parseGpioMessage(GpioUserMessage, line)
        if (message) drive(port, message)
        else {
          log.warn({ line: line.slice(0, 100) }, 'not a message of the GPIO socket')
          users.delete(port)
          port.close()
        }
      },
      onClose: () => void users.delete(port),
    })
    users.add(port)
    send(port, {
      type: 'lines',
      protocol: GPIO_PROTOCOL_VERSION,
      lines: bank.lines.map(({ name, direction }) => ({
        name,
        direction,
        level: bank.get(name),
        driven: driven.has(name),
      })),
    })
  }

  function drive(port: LinePort, { name, level }: GpioUserMessage): void {
    const line = bank.lines.find((line) => line.name === name)
    if (!line) send(port, { type: 'refused', name, reason: 'unknown_line' })
    else if (!bank.drive(name, level)) send(port, { type: 'refused', name, reason: 'not_an_output' })
    else {
      driven.add(name)
      send(port, { type: 'level', name, level: bank.get(name) })
    }
  }

  const server = createServer(serve)
  const address = await listenAt(server, options.address)
  return {
    address,
    close() {
      removeListener()
      stopAlive()
      for (const port of users) port.close()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}
