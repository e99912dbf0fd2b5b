import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { contender, serverOf } from '../../../cloud/gateway/shares.ts'

const names = fc.uniqueArray(fc.uuid(), { minLength: 2, maxLength: 8 })
const HUBS = 2000
const hubs = Array.from({ length: HUBS }, (_, index) => index + 1)
const serversOf = (processes: readonly string[]) => {
  const contenders = processes.map(contender)
  return hubs.map((hubId) => serverOf(hubId, contenders))
}

test('hubs are shared evenly: no share differs by more than a third', () => {
  fc.assert(
    fc.property(names, (processes) => {
      const servers = serversOf(processes)
      const part = HUBS / processes.length
      for (const process of processes) {
        const share = servers.filter((server) => server === process).length
        // Five times the expected random deviation.
        expect(Math.abs(share - part)).toBeLessThan(5 * Math.sqrt(part))
      }
    }),
  )
})

test('a new process takes hubs from all others, and no hub moves between the others', () => {
  fc.assert(
    fc.property(names, ([added, ...processes]) => {
      const before = serversOf(processes)
      const after = serversOf([...processes, added!])
      for (const [index, server] of after.entries()) if (server !== before[index]) expect(server).toBe(added)
    }),
  )
})

test('a process that leaves gives its hubs to all others, and only those hubs move', () => {
  fc.assert(
    fc.property(names, ([gone, ...others]) => {
      const before = serversOf([gone!, ...others])
      const after = serversOf(others)
      for (const [index, server] of after.entries())
        if (before[index] !== gone) expect(server).toBe(before[index])
      const heirs = new Set(after.filter((_, index) => before[index] === gone))
      expect(heirs.size).toBe(others.length)
    }),
  )
})

test('the order in which a process learns of the others does not matter', () => {
  fc.assert(
    fc.property(names, (processes) => {
      expect(serversOf(processes.toReversed())).toEqual(serversOf(processes))
    }),
  )
})

test('no hub is served if no process serves', () => expect(serverOf(1, [])).toBeUndefined())
