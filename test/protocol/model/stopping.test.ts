import { expect, test, vi } from 'vitest'
import { silentLog } from '../../../protocol/model/log.ts'
import { stopper } from '../../../protocol/model/stopping.ts'
import { virtualClock } from '../../world/clock.ts'

function program(stop: () => Promise<void>) {
  const clock = virtualClock()
  const exits: { code: number; atMs: number }[] = []
  const exit = (code: number): void => void exits.push({ code, atMs: clock.monotonic() })
  return { clock, exits, tell: stopper({ clock, log: silentLog, timeoutMs: 8000, stop, exit }) }
}

const never = (): Promise<void> => new Promise(() => {})

test('a program that receives SIGTERM exits after its graceful shutdown', async () => {
  const { tell, exits } = program(() => Promise.resolve())
  tell('SIGTERM')
  await vi.waitFor(() => expect(exits).toEqual([{ code: 0, atMs: 0 }]))
})

test('a program that does not finish its shutdown exits when its time is over', () => {
  const { tell, exits, clock } = program(never)
  tell('SIGTERM')
  clock.advance(7999)
  expect(exits).toEqual([])
  clock.advance(1)
  expect(exits).toEqual([{ code: 1, atMs: 8000 }])
})

test('a second signal ends a program at once, but the same signal passed on twice counts once', () => {
  const { tell, exits, clock } = program(never)
  tell('SIGINT')
  tell('SIGTERM')
  clock.advance(499)
  tell('SIGINT')
  expect(exits).toEqual([])
  clock.advance(1)
  tell('SIGTERM')
  expect(exits).toEqual([{ code: 1, atMs: 500 }])
})

test('a program with a failed shutdown exits all the same', async () => {
  const { tell, exits } = program(() => Promise.reject(new Error('the disk is gone')))
  tell('SIGTERM')
  await vi.waitFor(() => expect(exits).toEqual([{ code: 1, atMs: 0 }]))
})
