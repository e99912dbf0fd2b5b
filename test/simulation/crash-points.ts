import type { Checkpoint } from '../../protocol/model/checkpoint.ts'
import type { Chance } from './chance.ts'
import type { Coverage } from './coverage.ts'
import { Crash, type Life } from './scheduler.ts'

/**
 * The checkpoints of a program, over all its processes and lives. The program crashes at the instants that
 * its seed chose. Each instant is the n-th passing of any checkpoint, so that rare and frequent checkpoints
 * are both covered.
 */
export class CrashPoints {
  #program: string
  #chance: Chance
  #coverage: Coverage
  #untilCrash: number
  #meanPassings: number
  armed = true

  constructor(program: string, chance: Chance, coverage: Coverage, meanPassings: number) {
    this.#program = program
    this.#chance = chance
    this.#coverage = coverage
    this.#meanPassings = meanPassings
    this.#untilCrash = this.#draw()
  }

  forLife(life: Life): Checkpoint {
    return (point) => {
      if (!life.alive) throw new Crash(life, point)
      this.#coverage.hit(`passed ${this.#program} ${point}`)
      if (!this.armed || --this.#untilCrash > 0) return
      this.#untilCrash = this.#draw()
      this.#coverage.hit(`crash ${this.#program} ${point}`)
      throw new Crash(life, point)
    }
  }

  #draw(): number {
    return 1 + Math.floor(-Math.log(1 - this.#chance.fraction()) * this.#meanPassings)
  }
}
