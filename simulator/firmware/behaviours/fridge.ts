import { every, type Clock } from '../../../protocol/model/runtime.ts'
import type { Fridge } from '../../physics/fridge.ts'
import type { Behaviour } from './behaviour.ts'

const READ_EVERY_MS = 5000
/** Hundredths of a degree. */
const WORTH_TELLING = 10

/** A fridge: a thermometer, read now and then; its doors are on GPIO lines. */
export function fridgeBehaviour(fridge: Fridge, clock: Clock): Behaviour {
  const read = (): number => Math.round(fridge.celsius() * 100) + 10_000
  let told = read()
  return {
    device: fridge.device,
    actions: [],
    refusal: () => 'unsupported',
    isSettled: () => false,
    start: () => () => {},
    sensed: () => ({ temp: told }),
    onSense: (listener) =>
      every(clock, READ_EVERY_MS, () => {
        const temperature = read()
        if (Math.abs(temperature - told) < WORTH_TELLING) return
        told = temperature
        listener()
      }),
  }
}
