import { existsSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { freePorts } from './support/ports.ts'

const range = '/proc/sys/net/ipv4/ip_local_port_range'

it.runIf(existsSync(range))(
  'no outgoing connection takes a port that a test has chosen for a program',
  async () => {
    const [firstOutgoing] = readFileSync(range, 'utf8').split(/\s+/).map(Number)
    const ports = await freePorts(600)
    expect(new Set(ports).size).toBe(600)
    expect(Math.max(...ports)).toBeLessThan(firstOutgoing!)
  },
)
