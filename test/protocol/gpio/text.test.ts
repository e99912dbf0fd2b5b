import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { GPIO_MAX_LINE } from '../../../protocol/gpio/messages.ts'
import {
  formatGpioAddress,
  parseGpioAddress,
  socketLinePort,
  type StreamSocket,
} from '../../../protocol/gpio/socket.ts'

/** A scripted socket with the lines that its port received. */
function connection() {
  const listeners = new Map<string, (chunk: string) => void>()
  const said: string[] = []
  const socket: StreamSocket = {
    setEncoding: () => {},
    on: (event: string, listener: (chunk: never) => void) => listeners.set(event, listener as () => void),
    write: () => true,
    destroy: () => listeners.get('close')!(''),
  }
  socketLinePort(socket, {
    onOpen() {},
    onLine: (line) => said.push(line),
    onClose: (reason) => said.push(`closed: ${reason}`),
  })
  return { said, receive: (chunk: string) => listeners.get('data')!(chunk) }
}

test('lines are complete for any division of the byte stream', () => {
  fc.assert(
    fc.property(
      fc.array(fc.string().map((text) => text.replaceAll('\n', ''))),
      fc.array(fc.nat(20), { minLength: 1 }),
      (lines, cuts) => {
        const text = lines.map((line) => `${line}\n`).join('')
        const { said, receive } = connection()
        for (let at = 0, index = 0; at < text.length; index++) {
          const size = cuts[index % cuts.length]! + 1
          receive(text.slice(at, at + size))
          at += size
        }
        expect(said).toEqual(lines)
      },
    ),
  )
})

test('a line beyond the cap ends the connection, and no later line is delivered', () => {
  const long = 'x'.repeat(GPIO_MAX_LINE + 1)
  for (const text of [long, `${long}\n`, `${long}\nmore\n`]) {
    const { said, receive } = connection()
    receive(text)
    receive('more\n')
    expect(said).toEqual(['closed: a line was too long'])
  }
  const { said, receive } = connection()
  receive(long.slice(2))
  expect(said).toEqual([])
  receive('xx')
  expect(said).toEqual(['closed: a line was too long'])
  const whole = connection()
  whole.receive(`${long.slice(1)}\n`)
  expect(whole.said).toEqual([long.slice(1)])
})

test('a formatted address is parsed to the same address, and other text is refused', () => {
  for (const text of ['unix:/run/gpio.sock', 'tcp:127.0.0.1:18990', 'tcp:::1:1'])
    expect(formatGpioAddress(parseGpioAddress(text)!)).toBe(text)
  for (const text of ['', 'unix:', 'tcp:host', 'tcp::1', 'tcp:h:70000', '/run/gpio.sock'])
    expect(parseGpioAddress(text)).toBeUndefined()
})
