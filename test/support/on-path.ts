import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** The path of a program; programs for administrators are often not on a user's path. */
export function onPath(program: string): string | undefined {
  return [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']
    .map((folder) => join(folder, program))
    .find((path) => existsSync(path))
}
