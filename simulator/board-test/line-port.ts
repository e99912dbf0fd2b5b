import { connect } from 'node:net'
import { SerialPort } from 'serialport'
import { MAX_LINE_BYTES } from '../../protocol/serial/frames.ts'
import { createLineSplitter, type OpenLinePort } from '../../protocol/serial/line-port.ts'
import { tcpAddress } from '../mounts/tcp.ts'

/**
 * The line to a board: a serial port, a pseudo-terminal, or `tcp:HOST:PORT`. The part of a line above the limit is
 * dropped.
 */
export const openBoardLine: OpenLinePort = ({ path, baudRate }, handlers) => {
  let hasEnded = false
  const split = createLineSplitter(MAX_LINE_BYTES + 2, (line) => {
    if (!hasEnded) handlers.onLine(line)
  })
  const end = (reason: string): void => {
    if (hasEnded) return
    hasEnded = true
    handlers.onClose(reason)
  }
  const address = tcpAddress(path)
  if (address) {
    const socket = connect(address)
    socket.setNoDelay(true)
    socket.setEncoding('latin1')
    socket.on('connect', () => handlers.onOpen())
    socket.on('data', (chunk: string) => split(chunk))
    socket.on('error', (error) => end(error.message))
    socket.on('close', () => end('the other end closed'))
    return {
      write: (line) => !hasEnded && socket.write(`${line}\n`, 'latin1'),
      close() {
        hasEnded = true
        socket.destroy()
      },
    }
  }
  const port = new SerialPort({ path, baudRate, hupcl: false, lock: true, autoOpen: false })
  port.on('error', (error) => end(error.message))
  port.on('close', (error: Error | null) => end(error?.message ?? 'the port closed'))
  port.on('data', (chunk: Buffer) => split(chunk.toString('latin1')))
  port.open((error) => {
    if (error) end(error.message)
    else if (hasEnded) port.close()
    else handlers.onOpen()
  })
  return {
    write: (line) => !hasEnded && port.isOpen && (port.write(`${line}\n`, 'latin1'), true),
    close() {
      hasEnded = true
      if (port.isOpen) port.close()
    },
  }
}
