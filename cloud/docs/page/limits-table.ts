export { limitsTable } from '../limits-table.ts'
