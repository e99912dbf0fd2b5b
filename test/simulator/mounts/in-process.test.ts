import { describe, expect, test } from 'vitest'
import { encodeFrame } from '../../../protocol/serial/codec.ts'
import { mountInProcess, type Wire } from '../../../simulator/mounts/wire.ts'
import { virtualClock } from '../../world/clock.ts'

function bench(latencies: number[]) {
  const clock = virtualClock()
  const arrived: string[] = []
  const listeners = new Set<(line: string) => void>()
  const wire: Wire = {
    controllerId: 'front',
    port: 'ports/front',
    toController: (line) => void arrived.push(line),
    onLine(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
  const openPort = mountInProcess([wire], { clock: clock, latencyMs: () => latencies.shift() ?? 1 })
  const open = (path: string) => {
    const events: string[] = []
    const port = openPort(
      { path, baudRate: 9600 },
      {
        onOpen: () => events.push('open'),
        onLine: (line) => events.push(line),
        onClose: (reason) => events.push(`closed: ${reason}`),
      },
    )
    return { port, events }
  }
  return { clock, arrived, open, send: (line: string) => listeners.forEach((listener) => listener(line)) }
}

describe('the in-process mount', () => {
  test('an in-process port opens after the call, by path or id; another path fails', () => {
    const { clock, open } = bench([])
    const ends = [open('ports/front'), open('front'), open('nowhere')]
    expect(ends.map(({ events }) => events)).toEqual([[], [], []])
    expect(ends[0]!.port.write('too early')).toBe(false)
    clock.advance(0)
    expect(ends.map(({ events }) => events)).toEqual([['open'], ['open'], ['closed: no such port: nowhere']])
  })

  test('an in-process port keeps the order of lines for any latency', () => {
    const { clock, open, arrived, send } = bench([50, 1, 30, 2])
    const { port, events } = open('front')
    clock.advance(0)
    for (const line of ['a', 'b']) port.write(line)
    for (const line of ['c', 'd']) send(line)
    clock.advance(49)
    expect(arrived).toEqual([])
    clock.advance(1)
    expect(arrived).toEqual(['a', 'b'])
    expect(events).toEqual(['open', 'c', 'd'])
  })

  test('lines written before the port closes arrive, lines from the other side do not', () => {
    const { clock, open, arrived, send } = bench([])
    const { port, events } = open('front')
    clock.advance(0)
    const line = encodeFrame({ seq: 1, type: 'PING', t: 1 })
    port.write(line)
    send('late')
    port.close()
    expect(port.write('more')).toBe(false)
    clock.advance(10)
    expect(arrived).toEqual([line])
    expect(events).toEqual(['open'])
  })
})
