/**
 * A cell is one installation among several behind one address: its own database, processes and hubs. The ids of an owner's
 * things come from the range of the cell. So the id of a hub names its cell, and exists once. The largest id fits into
 * 31 bits.
 */
const IDS_PER_CELL = 100_000_000
export const LAST_CELL = 20

/** Before its first id. */
export const idsBefore = (cell: number): number => cell * IDS_PER_CELL

/** The cell that has issued an id. */
export const cellOf = (id: number): number => Math.floor(id / IDS_PER_CELL)

/** A mark in names that callers send: nothing for cell 0, which keeps the names of a single installation. */
export const markOf = (cell: number): string => (cell === 0 ? '' : String(cell))
