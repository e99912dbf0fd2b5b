import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Listed } from './results.ts'
import { readScenario, ScenarioError } from './text.ts'

export interface ScenarioShelf {
  list(): Listed[]
  read(name: string): string | undefined
  /** Writes a scenario of the user. Throws `ScenarioError` if the library has the name. */
  write(name: string, text: string): void
  /** Removes a scenario of the user. Returns false if the name is unknown. */
  remove(name: string): boolean
}

const ENDING = '.yaml'

/** Scenarios as files: the read-only library, and the user's own in another folder. Callers check the names. */
export function folderScenarios(library: string, own: string): ScenarioShelf {
  const namesOf = (folder: string): string[] =>
    readdirSync(folder)
      .filter((file) => file.endsWith(ENDING))
      .map((file) => file.slice(0, -ENDING.length))
      .sort()
  const owned = (): string[] => {
    mkdirSync(own, { recursive: true })
    return namesOf(own)
  }
  const pathOf = (name: string): string | undefined =>
    namesOf(library).includes(name)
      ? join(library, `${name}${ENDING}`)
      : owned().includes(name)
        ? join(own, `${name}${ENDING}`)
        : undefined
  const listed =
    (folder: string, source: Listed['source']) =>
    (name: string): Listed => {
      try {
        const { description, parameters } = readScenario(
          readFileSync(join(folder, `${name}${ENDING}`), 'utf8'),
        )
        return { name, source, description, parameters }
      } catch (error) {
        if (!(error instanceof ScenarioError)) throw error
        return { name, source, description: '', parameters: {}, problems: error.problems }
      }
    }
  return {
    list: () => [...owned().map(listed(own, 'own')), ...namesOf(library).map(listed(library, 'library'))],
    read(name) {
      const path = pathOf(name)
      return path === undefined ? undefined : readFileSync(path, 'utf8')
    },
    write(name, text) {
      if (namesOf(library).includes(name))
        throw new ScenarioError([`${name} is a scenario of the library: give yours another name`])
      mkdirSync(own, { recursive: true })
      const path = join(own, `${name}${ENDING}`)
      writeFileSync(`${path}.new`, text)
      renameSync(`${path}.new`, path)
    },
    remove(name) {
      if (!owned().includes(name)) return false
      rmSync(join(own, `${name}${ENDING}`))
      return true
    },
  }
}
