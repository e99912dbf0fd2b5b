import { afterEach, beforeEach, describe, expect, vi } from 'vitest'
import { fuse } from '../../../support/fuse.ts'
import { createBench, chipLabel, type Bench, type Mounted } from './mounted.ts'
import type { AgentRequest } from './onoff-agent.ts'

const AGENT = 'test/simulator/mounts/gpio/onoff-agent'

let bench: Bench
beforeEach(() => void (bench = createBench()))
afterEach(() => bench.end())

/** The agent's answer: the value, or the error's code. */
async function ask(agent: Mounted, request: AgentRequest): Promise<unknown> {
  agent.send(request)
  const answer = await agent.next()
  return 'error' in answer ? answer['error'] : answer['value']
}
const read = (agent: Mounted, path: string) => ask(agent, { do: 'read', path })
const write = (agent: Mounted, path: string, text: string) => ask(agent, { do: 'write', path, text })

describe.each([0, 512])('sysfs with the chip at base %i', (base) => {
  const lock = base + 17
  const door = base + 27
  const invertedLock = base + 5
  const invertedDoor = base + 6

  fuse('the sysfs tree shows the chip, and its pins after their export', async () => {
    const agent = await bench.mount(AGENT, [], base)
    expect(await ask(agent, { do: 'list', path: '' })).toEqual(['export', `gpiochip${base}`, 'unexport'])
    expect(await read(agent, `gpiochip${base}/label`)).toBe(`${chipLabel}\n`)
    expect(await read(agent, `gpiochip${base}/base`)).toBe(`${base}\n`)
    expect(await read(agent, `gpiochip${base}/ngpio`)).toBe('54\n')
    expect(await write(agent, 'export', `${lock}`)).toBeNull()
    expect(await ask(agent, { do: 'list', path: `gpio${lock}` })).toEqual([
      'active_low',
      'direction',
      'edge',
      'value',
    ])
    expect(await read(agent, `gpio${lock}/direction`)).toBe('in\n')
    expect(await write(agent, 'unexport', `${lock}\n`)).toBeNull()
    expect(await read(agent, `gpio${lock}/direction`)).toBe('ENOENT')
  })

  fuse('sysfs refuses invalid operations with the kernel’s errors', async () => {
    const agent = await bench.mount(AGENT, [], base)
    expect(await write(agent, 'export', `${base + 54}`)).toBe('EINVAL')
    expect(await write(agent, 'export', 'seven')).toBe('EINVAL')
    expect(await write(agent, 'unexport', `${lock}`)).toBe('EINVAL')
    await write(agent, 'export', `${door}`)
    expect(await write(agent, 'export', `${door}`)).toBe('EBUSY')
    expect(await write(agent, `gpio${door}/value`, '1')).toBe('EPERM')
    expect(await write(agent, `gpio${door}/direction`, 'sideways')).toBe('EINVAL')
    expect(await write(agent, `gpio${door}/edge`, 'soft')).toBe('EINVAL')
    await write(agent, 'export', `${lock}`)
    await write(agent, `gpio${lock}/direction`, 'out')
    expect(await write(agent, `gpio${lock}/edge`, 'both')).toBe('EIO')
    expect(await write(agent, `gpio${lock}/value`, 'on')).toBe('EINVAL')
  })

  fuse('onoff drives an output, and the directions low and high are voltages', async () => {
    const agent = await bench.mount(AGENT, [], base)
    await ask(agent, { do: 'open', pin: lock, direction: 'out' })
    expect(agent.bank.get('main_lock')).toBe(0)
    await ask(agent, { do: 'set', pin: lock, level: 1 })
    await vi.waitUntil(() => agent.bank.get('main_lock') === 1)
    expect(await ask(agent, { do: 'get', pin: lock })).toBe(1)
    // This lock is wired so that a low voltage unlocks it.
    await ask(agent, { do: 'open', pin: invertedLock, direction: 'low' })
    await vi.waitUntil(() => agent.bank.get('fridge_1_left_lock') === 1)
    await write(agent, `gpio${invertedLock}/direction`, 'high')
    await vi.waitUntil(() => agent.bank.get('fridge_1_left_lock') === 0)
    await write(agent, `gpio${invertedLock}/active_low`, '1')
    expect(await ask(agent, { do: 'get', pin: invertedLock })).toBe(0)
    await ask(agent, { do: 'set', pin: invertedLock, level: 1 })
    await vi.waitUntil(() => agent.bank.get('fridge_1_left_lock') === 1)
  })

  fuse('onoff receives edges through epoll, and only the requested ones', async () => {
    const agent = await bench.mount(AGENT, [], base)
    await ask(agent, { do: 'open', pin: door, direction: 'in', edge: 'both' })
    await ask(agent, { do: 'watch', pin: door })
    agent.bank.set('main_door', 1)
    expect(await agent.next()).toEqual({ edge: door, level: 1 })
    agent.bank.set('main_door', 0)
    expect(await agent.next()).toEqual({ edge: door, level: 0 })
    await ask(agent, {
      do: 'open',
      pin: invertedDoor,
      direction: 'in',
      edge: 'rising',
      options: { activeLow: true },
    })
    await ask(agent, { do: 'watch', pin: invertedDoor })
    agent.bank.set('fridge_1_left_door', 1)
    expect(await agent.next()).toEqual({ edge: invertedDoor, level: 1 })
    agent.bank.set('fridge_1_left_door', 0)
    agent.bank.set('main_door', 1)
    expect(await agent.next()).toEqual({ edge: door, level: 1 })
    expect(await ask(agent, { do: 'get', pin: invertedDoor })).toBe(0)
  })

  fuse('edges during a stall of the hub merge into one, with the present level', async () => {
    const agent = await bench.mount(AGENT, [], base)
    await ask(agent, { do: 'open', pin: door, direction: 'in', edge: 'both' })
    await ask(agent, { do: 'watch', pin: door })
    agent.send({ do: 'stall', ms: 300 })
    expect(await agent.next()).toEqual({ stalling: true })
    for (const level of [1, 0, 1, 0, 1] as const) agent.bank.set('main_door', level)
    expect(await agent.next()).toEqual({ value: null })
    expect(await agent.next()).toEqual({ edge: door, level: 1 })
    expect(await ask(agent, { do: 'get', pin: door })).toBe(1)
  })
})

fuse('the command and its mount end together, in either order, with the status of the command', async () => {
  const alive = (pid: number) => {
    try {
      return process.kill(pid, 0)
    } catch {
      return false
    }
  }
  const exit = (mounted: Mounted) =>
    new Promise((resolve) => mounted.process.once('exit', (code, signal) => resolve([code, signal])))

  const terminated = await bench.mount(AGENT, [], 0)
  const status = exit(terminated)
  terminated.process.kill('SIGTERM')
  expect(await status).toEqual([7, null])

  const shot = await terminated.again()
  const signal = exit(shot)
  process.kill(await shot.pid(), 'SIGKILL')
  expect(await signal).toEqual([null, 'SIGKILL'])

  const orphaned = await terminated.again()
  const pid = await orphaned.pid()
  orphaned.process.kill('SIGKILL')
  await vi.waitUntil(() => !alive(pid), { timeout: 5000 })

  const left = await terminated.again()
  const leftStatus = exit(left)
  left.process.disconnect()
  expect(await leftStatus).toEqual([7, null])
})
