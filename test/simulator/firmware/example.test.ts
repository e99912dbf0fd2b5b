import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, vi } from 'vitest'
import { encodeFrame } from '../../../protocol/serial/codec.ts'
import { sleep } from '../../../protocol/model/runtime.ts'
import { createLineSplitter } from '../../../protocol/serial/line-port.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { runExampleFirmware } from '../../process/example-firmware.ts'
import { service } from '../../support/services.ts'

const { clock } = systemRuntime()
const power = {
  on: 'power',
  protocol: 1,
  controller: 'bins',
  devices: [{ kind: 'bin', number: 1 }],
  drop_window_ms: 1000,
  flash: [],
}
const text = (messages: readonly object[]): string =>
  messages.map((message) => `${JSON.stringify(message)}\n`).join('')

service('python3')(
  'the example controller starts again after a power cut that comes at the moment of a repetition',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'larder-example-'))
    const lives: Socket[] = []
    const sent: string[] = []
    const server = createServer((socket) => {
      lives.push(socket)
      socket.on('error', () => {})
      const answer = createLineSplitter(1_048_576, (line) => {
        const { id, ...request } = JSON.parse(line) as { id: number; do: string; line?: string }
        if (request.line !== undefined) sent.push(request.line)
        socket.write(text([{ re: id, ok: true, value: 'closed', moved: false }]))
      })
      socket.setEncoding('utf8').on('data', (chunk: string) => answer(chunk))
      socket.write(text([power]))
    })
    await new Promise<void>((resolve) => server.listen(join(folder, 'board-bins.sock'), resolve))
    const firmware = runExampleFirmware(folder, ['bins'])
    onTestFinished(async () => {
      await firmware.stop()
      server.close()
      for (const socket of lives) socket.destroy()
      rmSync(folder, { recursive: true })
    })

    const welcomes = () => sent.filter((line) => line.includes(' WELCOME '))
    const hello = { on: 'line', line: encodeFrame({ seq: 1, type: 'HELLO', proto: 3, host: 'abcd0001' }) }
    for (const life of [1, 2, 3]) {
      await vi.waitFor(() => expect(lives).toHaveLength(life), 10_000)
      // No host acknowledges the WELCOME: it is repeated.
      lives.at(-1)!.write(text([hello]))
      sent.length = 0
      await vi.waitFor(() => expect(welcomes().length).toBeGreaterThan(2), 10_000)
      firmware.signal('SIGSTOP')
      lives.at(-1)!.destroy()
      await sleep(clock, 500)
      firmware.signal('SIGCONT')
    }
    await vi.waitFor(() => expect(lives).toHaveLength(4), 10_000)
    expect(firmware.complaints()).toBe('')
  },
)
