import { createServer, type Socket } from 'node:net'
import { z } from 'zod'
import type { GpioAddress } from '../../../protocol/gpio/socket.ts'
import type { Log } from '../../../protocol/model/log.ts'
import { createLineSplitter } from '../../../protocol/serial/line-port.ts'
import type { Controller } from '../../board/controller.ts'
import { BOARD_MAX_LINE, BoardError, BoardRequest, type Program } from '../../board/messages.ts'
import { listenAt } from '../listen.ts'

export interface BoardServer {
  /** The listening address, with the assigned port if it was 0. */
  readonly address: GpioAddress
  close(): Promise<void>
}

/** A request may have a number, which its reply repeats. */
const Numbered = z.object({ id: z.int().min(0).max(1e9).optional() })

/**
 * Serves a board to its firmware, another program (`board/SPEC.md`). A connection is one life of the processor: it ends
 * with the board's power, and motors stop when it ends. The latest connection has the board.
 */
export async function serveBoard(
  controller: Controller,
  options: { address: GpioAddress; log: Log },
): Promise<BoardServer> {
  const { log } = options
  const sockets = new Set<Socket>()

  function serve(socket: Socket): void {
    socket.setNoDelay(true)
    socket.setEncoding('utf8')
    const write = (message: object): void =>
      void (socket.writable && socket.write(`${JSON.stringify(message)}\n`))
    const program: Program = { event: write, cut: () => void socket.destroy() }
    const unplug = controller.plug(program)
    sockets.add(socket)
    const split = createLineSplitter(BOARD_MAX_LINE, (line) => {
      if (!socket.destroyed) write(answer(controller, line))
    })
    socket.on('data', (chunk: string) => split(chunk))
    socket.on('error', (error) =>
      log.debug({ controller: controller.id, error: error.message }, 'a firmware is gone'),
    )
    socket.on('close', () => {
      sockets.delete(socket)
      unplug()
    })
  }

  const server = createServer(serve)
  const address = await listenAt(server, options.address)
  return {
    address,
    close() {
      for (const socket of sockets) socket.destroy()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

/** Answers every line, with the number of its request; an invalid request gets an error text. */
function answer(controller: Controller, line: string): object {
  let json: unknown
  try {
    json = JSON.parse(line)
  } catch {
    return { error: 'not JSON' }
  }
  const numbered = Numbered.safeParse(json)
  if (!numbered.success) return { error: 'not a request' }
  const { id } = numbered.data
  const { id: _, ...rest } = json as { id?: unknown }
  const request = BoardRequest.safeParse(rest)
  if (!request.success) return { re: id, error: z.prettifyError(request.error) }
  try {
    return { re: id, ...(controller.ask as (request: BoardRequest) => object)(request.data) }
  } catch (error) {
    if (!(error instanceof BoardError)) throw error
    return { re: id, error: error.message }
  }
}
