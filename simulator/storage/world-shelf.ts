import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'

/** A saved world: each log of a hub's storage with its entries. */
export type SavedWorld = Record<string, readonly unknown[]>

/** Saved worlds by name. */
export interface WorldShelf {
  names(): string[]
  read(name: string): SavedWorld | undefined
  write(name: string, world: SavedWorld): void
}

const World = z.record(z.string(), z.array(z.unknown()))

/** Worlds as files `<folder>/<name>.json`. The caller must check names from outside. */
export function folderShelf(folder: string): WorldShelf {
  const pathOf = (name: string): string => join(folder, `${name}.json`)
  function names(): string[] {
    mkdirSync(folder, { recursive: true })
    return readdirSync(folder)
      .filter((file) => file.endsWith('.json'))
      .map((file) => file.slice(0, -'.json'.length))
      .sort()
  }
  return {
    names,
    read(name): SavedWorld | undefined {
      if (!names().includes(name)) return undefined
      const world = World.safeParse(JSON.parse(readFileSync(pathOf(name), 'utf8')))
      return world.success ? world.data : undefined
    },
    write(name, world) {
      mkdirSync(folder, { recursive: true })
      writeFileSync(`${pathOf(name)}.new`, JSON.stringify(world))
      renameSync(`${pathOf(name)}.new`, pathOf(name))
    },
  }
}
