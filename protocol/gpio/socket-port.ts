import type { LinePort, LinePortHandlers } from '../serial/line-port.ts'
import { createLineSplitter } from './line-splitter.ts'
import { GPIO_MAX_LINE } from './messages.ts'

/** What is used of a `net.Socket`; named here so that the protocol itself opens nothing. */
export interface StreamSocket {
  setEncoding(encoding: 'utf8'): unknown
  on(event: 'connect' | 'close', listener: () => void): unknown
  on(event: 'data', listener: (chunk: string) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  write(text: string): boolean
  destroy(): unknown
}

/** A connected or connecting socket as a port of lines: used once, as every `LinePort`. */
export function socketLinePort(socket: StreamSocket, handlers: LinePortHandlers): LinePort {
  const split = createLineSplitter(GPIO_MAX_LINE)
  let open = true
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
  socket.on('data', (chunk) => {
    const lines = split(chunk)
    if (lines === undefined) {
      reason = 'a line was too long'
      socket.destroy()
      return
    }
    for (const line of lines) if (open) handlers.onLine(line)
  })

  return {
    write(line) {
      if (!open) return false
      // Never awaited: a peer that does not read is noticed by its silence, and the messages are few.
      socket.write(`${line}\n`)
      return true
    },
    close() {
      open = false
      socket.destroy()
    },
  }
}
