#%Module1.0
# Stoker for Environment Modules (Lmod reads it, too). Installed as PREFIX/share/stoker/modulefiles/tcl/stoker/VERSION:
#
#   module use PREFIX/share/stoker/modulefiles/tcl
#   module load stoker
#
# PREFIX follows from the file's own path, so the tree may be moved. If you copy the file elsewhere, set `prefix` here.
set prefix ""
regexp {^(.*)/share/stoker/modulefiles/} $ModulesCurrentModulefile -> prefix

proc ModulesHelp {} {
    puts stderr "Stoker packs training data, runs jobs on this machine or under Slurm, explains failures and resumes."
    puts stderr "Start with: stoker --help"
}

if {$prefix eq ""} {
    error "stoker: set 'prefix' in $ModulesCurrentModulefile"
}
module-whatis "packs training data, runs training jobs under Slurm, explains failures, resumes and reports"
conflict stoker
prepend-path PATH $prefix/bin
# Without these variables the programs search default folders: man finds the pages beside PATH.
if {[info exists env(MANPATH)]} {
    prepend-path MANPATH $prefix/share/man
}
if {[info exists env(XDG_DATA_DIRS)]} {
    # completions of bash and fish
    prepend-path XDG_DATA_DIRS $prefix/share
}
