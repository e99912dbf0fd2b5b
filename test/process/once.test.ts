import { expect, test } from 'vitest'
import { once } from '../support/once.ts'

test('a step that fails in one worker fails in all workers with its reason, and runs once', () => {
  let runs = 0
  const fail = (): void => {
    runs += 1
    throw new Error('the disk is full')
  }
  for (let worker = 0; worker < 2; worker += 1)
    expect(() => once('a step that fails', fail)).toThrow('the disk is full')
  expect(runs).toBe(1)
})

test('a step that succeeds runs once', () => {
  let runs = 0
  for (let worker = 0; worker < 2; worker += 1) once('a step that succeeds', () => void (runs += 1))
  expect(runs).toBe(1)
})
