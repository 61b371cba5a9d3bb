-- Stoker for Lmod. Installed as PREFIX/share/stoker/modulefiles/lmod/stoker/VERSION.lua:
--
--   module use PREFIX/share/stoker/modulefiles/lmod
--   module load stoker
--
-- PREFIX follows from the file's own path, so the tree may be moved. If you copy the file elsewhere, set `prefix` here.
local prefix = myFileName():match("^(.*)/share/stoker/modulefiles/")

if not prefix then
  LmodError("stoker: set 'prefix' in " .. myFileName())
end
whatis("Name: stoker")
whatis("Version: " .. myModuleVersion())
whatis("Description: packs training data, runs training jobs under Slurm, explains failures, resumes and reports")
help("Stoker packs training data, runs jobs on this machine or under Slurm, explains failures and resumes.\n" ..
     "Start with: stoker --help")
conflict("stoker")
prepend_path("PATH", pathJoin(prefix, "bin"))
-- Without these variables the programs search default folders: man finds the pages beside PATH.
if os.getenv("MANPATH") then
  prepend_path("MANPATH", pathJoin(prefix, "share/man"))
end
if os.getenv("XDG_DATA_DIRS") then  -- completions of bash and fish
  prepend_path("XDG_DATA_DIRS", pathJoin(prefix, "share"))
end
