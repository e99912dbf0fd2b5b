import { expect } from 'vitest'
import type { Act } from '../../simulator/physics/world-state.ts'
import type { CallAnswer } from '../world/cloud.ts'

/** Readers of control answers and of the simulator's log. */

export const UUID = expect.stringMatching(/^[0-9a-f-]{36}$/) as string

/** An act in two words: `open_door bin-1`. */
export const short = ({ device, action }: Act): string => `${action} ${device}`

/** `response_data` of a standard response (O §4.6). */
export function dataOf(answer: CallAnswer): unknown {
  expect([answer.status, answer.json]).toEqual([
    200,
    {
      status: 'ok',
      result: { success: true, status_code: expect.any(Number), response_data: expect.anything() },
    },
  ])
  return (answer.json as { result: { response_data: unknown } }).result.response_data
}

/** `status_code` of a standard response. */
export const codeOf = (answer: CallAnswer): unknown =>
  (answer.json as { result: { status_code: unknown } }).result.status_code
