import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { long } from './long-tests.ts'

/**
 * Starts the longest files first. Otherwise the last one would run alone at the end, while one processor is
 * idle.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const others = await super.sort(files)
    const rank = ({ moduleId }: TestSpecification): number => {
      const at = long.findIndex((path) => moduleId.endsWith(path))
      return at === -1 ? long.length : at
    }
    return others.toSorted((a, b) => rank(a) - rank(b))
  }
}
