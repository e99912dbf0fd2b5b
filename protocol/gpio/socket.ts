import { bareHost } from '../model/address.ts'
import { createLineSplitter, type LinePort, type LinePortHandlers } from '../serial/line-port.ts'
import { GPIO_MAX_LINE } from './messages.ts'

/** The address of a GPIO socket: `unix:/run/larder/gpio.sock` or `tcp:127.0.0.1:18990`. */
export type GpioAddress = { path: string } | { host: string; port: number }

/** Parses an address; `undefined` for other texts. */
export function parseGpioAddress(text: string): GpioAddress | undefined {
  if (text.startsWith('unix:')) {
    const path = text.slice('unix:'.length)
    return path === '' ? undefined : { path }
  }
  const match = /^tcp:(.+):(\d{1,5})$/.exec(text)
  const port = Number(match?.[2])
  return match && port <= 65_535 ? { host: bareHost(match[1]!), port } : undefined
}

export function formatGpioAddress(address: GpioAddress): string {
  return 'path' in address ? `unix:${address.path}` : `tcp:${address.host}:${address.port}`
}

/** The used part of a `net.Socket`; declared here so that the protocol itself opens nothing. */
export interface StreamSocket {
  setEncoding(encoding: 'utf8'): unknown
  on(event: 'connect' | 'close', listener: () => void): unknown
  on(event: 'data', listener: (chunk: string) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  write(text: string): boolean
  destroy(): unknown
}

/** A connected or connecting socket as a port of lines. It is used once, like every `LinePort`. */
export function socketLinePort(socket: StreamSocket, handlers: LinePortHandlers): LinePort {
  let open = true
  let isBroken = false
  let reason = 'the other end closed'

  socket.setEncoding('utf8')
  socket.on('connect', () => void (open && handlers.onOpen()))
  socket.on('error', (error) => {
    reason = error.message
  })
  socket.on('close', () => {
    if (!open) return
    open = false
    handlers.onClose(reason)
  })
  socket.on(
    'data',
    createLineSplitter(GPIO_MAX_LINE, (line) => {
      if (!open || isBroken) return
      if (line.length <= GPIO_MAX_LINE) return handlers.onLine(line)
      isBroken = true
      reason = 'a line was too long'
      socket.destroy()
    }),
  )

  return {
    write(line) {
      if (!open) return false
      // Not awaited: the messages are few, and the silence of a peer that does not read is noticed.
      socket.write(`${line}\n`)
      return true
    },
    close() {
      open = false
      socket.destroy()
    },
  }
}
