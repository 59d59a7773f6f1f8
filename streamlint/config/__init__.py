"""What a run is asked: settings from configuration files and the command line in; options, selected rules and targets of reports out.

Stands on `support`, on the catalog of `checks` and on the rows of users in `models`.
"""
