import { existsSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { freePorts, portChooser } from './support/ports.ts'

const range = '/proc/sys/net/ipv4/ip_local_port_range'

it.runIf(existsSync(range))(
  'no outgoing connection takes a port that a test has chosen for a program',
  async () => {
    const [firstOutgoing] = readFileSync(range, 'utf8').split(/\s+/).map(Number)
    const ports = await freePorts(200)
    expect(new Set(ports).size).toBe(200)
    expect(Math.max(...ports)).toBeLessThan(firstOutgoing!)
  },
)

it('two processes that choose ports at the same time never get the same port, although none is in use yet', async () => {
  const start = process.pid + 1
  const [first, second] = [await portChooser(start)(20), await portChooser(start)(20)]
  expect(first.filter((port) => second.includes(port))).toEqual([])
})
